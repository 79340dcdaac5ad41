"""Norms of perturbations: they measure sizes, and project into a ball.

A perturbation is a list of arrays. A *sample* is everything behind their first `axes`
axes, all arrays together.
"""

import jax
import jax.numpy as jnp
from jax.typing import ArrayLike

from ppo_jax.component import component
from ppo_jax.errors import missing
from ppo_jax.types import Array, Key

Delta = list[Array]
"""A perturbation: one array to add to each float leaf of the observations."""


@component
class Norm:
    """A measure of the size of a sample's perturbation."""

    def size(self, delta: Delta, axes: int) -> Array:
        """Returns the size of every sample's perturbation, float32 `[...]`."""
        raise missing(self, "size")

    def steepest(self, gradient: Delta, axes: int) -> Delta:
        """Returns the direction of size 1 that raises a linear function the most.

        It is 0 where the gradient is 0.
        """
        raise missing(self, "steepest")

    def project(self, delta: Delta, eps: ArrayLike, axes: int) -> Delta:
        """Returns the nearest perturbation whose samples are of size ≤ ε."""
        raise missing(self, "project")

    def sample(self, key: Key, like: Delta, axes: int) -> Delta:
        """Draws a random perturbation of size ≤ 1."""
        raise missing(self, "sample")


@component
class LInf(Norm):
    """The largest absolute component."""

    def size(self, delta: Delta, axes: int) -> Array:
        parts = [jnp.abs(x).max(axis=_behind(x, axes), initial=0.0) for x in delta]
        return jnp.stack(parts).max(axis=0)

    def steepest(self, gradient: Delta, axes: int) -> Delta:
        return [jnp.sign(x) for x in gradient]

    def project(self, delta: Delta, eps: ArrayLike, axes: int) -> Delta:
        return [jnp.clip(x, -jnp.asarray(eps), eps) for x in delta]

    def sample(self, key: Key, like: Delta, axes: int) -> Delta:
        keys = jax.random.split(key, len(like))
        draws = zip(keys, like, strict=True)
        return [jax.random.uniform(k, x.shape, minval=-1, maxval=1) for k, x in draws]


@component
class L2(Norm):
    """The Euclidean length."""

    def size(self, delta: Delta, axes: int) -> Array:
        # Scaled, squares do not overflow; the inverse of 1e37 is not denormal.
        largest = jnp.minimum(LInf().size(delta, axes), 1e37)
        parts = [jnp.sum(x**2, axis=_behind(x, axes)) for x in _divided(delta, largest)]
        return largest * jnp.sqrt(jnp.stack(parts).sum(axis=0))

    def steepest(self, gradient: Delta, axes: int) -> Delta:
        largest = jnp.minimum(LInf().size(gradient, axes), 1e37)
        shrunk = _divided(gradient, largest)
        return _divided(shrunk, self.size(shrunk, axes))

    def project(self, delta: Delta, eps: ArrayLike, axes: int) -> Delta:
        size = self.size(delta, axes)
        shrink = eps / jnp.where(size > 0, size, 1.0)
        factor = jnp.where(size > eps, shrink, 1.0)
        return [x * _spread(factor, x) for x in delta]

    def sample(self, key: Key, like: Delta, axes: int) -> Delta:
        key_radius, key_direction = jax.random.split(key)
        keys = jax.random.split(key_direction, len(like))
        draws = zip(keys, like, strict=True)
        normal = [jax.random.normal(k, x.shape) for k, x in draws]
        radius = jax.random.uniform(key_radius, like[0].shape[:axes])
        direction = self.steepest(normal, axes)
        return [x * _spread(radius, x) for x in direction]


def _behind(x: Array, axes: int) -> tuple[int, ...]:
    return tuple(range(axes, x.ndim))


def _spread(per_sample: Array, like: Array) -> Array:
    """Returns numbers `[...]` with as many axes as the leaf `like`."""
    return jnp.expand_dims(per_sample, tuple(range(per_sample.ndim, like.ndim)))


def _divided(delta: Delta, size: Array) -> Delta:
    """Divides every sample by its size; a sample of size 0 stays 0."""
    divisor = jnp.where(size > 0, size, 1.0)
    return [x / _spread(divisor, x) for x in delta]

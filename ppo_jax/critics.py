"""Kinds of critic, one interface: what a head's numbers say about the return.

A `ValueDist` has leaves `[..., C, N]`: C critics, N numbers each. Nobody outside this
file knows which kind it is. A state is worth what the most pessimistic critic says:
the least of their means, everywhere.
"""

import dataclasses
from typing import Any, Self

import jax.numpy as jnp
from flax import struct
from jax.typing import ArrayLike

from ppo_jax import losses
from ppo_jax.component import component, require, require_range
from ppo_jax.types import Array


@struct.dataclass
class ValueDist:
    """What critics predict; `critic` is the kind that can read it."""

    outputs: Array
    """What the heads put out, `[..., C, N]`."""
    critic: Any

    def mean(self) -> Array:
        """Mean of every critic's prediction, `[..., C]`."""
        return self.critic.mean(self.outputs)

    def cvar(self, alpha: ArrayLike) -> Array:
        """Mean of the worst share `alpha` of every critic's prediction, `[..., C]`."""
        return self.critic.cvar(self.outputs, alpha)

    def loss(self, target: Array) -> Array:
        """Loss of every critic against sampled returns `[...]`, `[..., C]`."""
        target = jnp.broadcast_to(target[..., None], self.outputs.shape[:-1])
        return self.critic.loss(self.outputs, target)

    def clip(self, old: Self, eps: ArrayLike) -> Self:
        """The prediction kept within `eps` of an old one, as its critic clips."""
        return dataclasses.replace(
            self, outputs=self.critic.clip(self.outputs, old.outputs, eps)
        )


def pessimistic(value: ValueDist) -> Array:
    """What a state is worth: the least of the critics' means, `[...]`.

    >>> twins = ValueDist(jnp.array([[[3.0], [2.0]]]), critic=Scalar())
    >>> pessimistic(twins).tolist()
    [2.0]
    """
    return value.mean().min(axis=-1)


@component
class Critic:
    """How many numbers a head puts out and what they mean."""

    @property
    def num_outputs(self) -> int:
        """N, the numbers that one critic puts out for a state."""
        raise NotImplementedError

    def mean(self, outputs: Array) -> Array:
        """Expected return, `[..., N]` to `[...]`."""
        raise NotImplementedError

    def cvar(self, outputs: Array, alpha: ArrayLike) -> Array:
        """Mean of the worst share `alpha` of returns, `[..., N]` to `[...]`."""
        raise NotImplementedError

    def loss(self, outputs: Array, target: Array) -> Array:
        """Loss per example, `[..., N]` and `[...]` to `[...]`."""
        raise NotImplementedError

    def clip(self, outputs: Array, old: Array, eps: ArrayLike) -> Array:
        """Outputs within `eps` of old ones."""
        raise NotImplementedError


@component
class Scalar(Critic):
    """One number, the expected return; squared error ½ (y − v)²."""

    @property
    def num_outputs(self) -> int:
        return 1

    def mean(self, outputs: Array) -> Array:
        return outputs[..., 0]

    def cvar(self, outputs: Array, alpha: ArrayLike) -> Array:
        del alpha
        return outputs[..., 0]

    def loss(self, outputs: Array, target: Array) -> Array:
        return losses.squared_error(outputs[..., 0], target)

    def clip(self, outputs: Array, old: Array, eps: ArrayLike) -> Array:
        return losses.clip_around(outputs, old, eps)


@component
class Quantile(Critic):
    """Quantiles of the return at the midpoints (i + ½) / N.

    Attributes:
        num_quantiles: N ≥ 1.
        kappa: Where the Huber loss turns from a square to a line, > 0.

    Raises:
        ValueError: At construction, for a number out of its range.
    """

    num_quantiles: int = 32
    kappa: float = 1.0

    def validate(self) -> None:
        """Raises a `ValueError` for a number out of its range."""
        name = "Quantile.num_quantiles"
        require(self.num_quantiles >= 1, name, self.num_quantiles, "at least 1")
        require_range(self, "kappa", "a number > 0", lambda kappa: kappa > 0)

    @property
    def num_outputs(self) -> int:
        return self.num_quantiles

    def mean(self, outputs: Array) -> Array:
        return outputs.mean(axis=-1)

    def cvar(self, outputs: Array, alpha: ArrayLike) -> Array:
        return losses.cvar(outputs, alpha)

    def loss(self, outputs: Array, target: Array) -> Array:
        return losses.quantile_huber_loss(outputs, target, self.kappa)

    def clip(self, outputs: Array, old: Array, eps: ArrayLike) -> Array:
        return losses.clip_each(outputs, old, eps)

"""Factors that follow the progress of training, for numbers that change on a plan.

A factor depends on progress alone: it restarts nowhere, and skipped steps do not
hold it back. Progress outside of [0, 1] counts as the nearest end.
"""

import math

import jax.numpy as jnp
from jax.typing import ArrayLike

from ppo_jax.component import component, require_range
from ppo_jax.types import Array


@component
class Schedule:
    """A function of progress; the number it belongs to is multiplied by the result."""

    def __call__(self, progress: ArrayLike) -> Array:
        """The factor, float32 `[]`.

        Args:
            progress: Finished share of training, in [0, 1]; may be traced.
        """
        raise NotImplementedError


@component
class Constant(Schedule):
    """The factor 1.

    >>> float(Constant()(0.3))
    1.0
    """

    def __call__(self, progress: ArrayLike) -> Array:
        return jnp.ones_like(_clipped(progress))


@component
class Linear(Schedule):
    """From 1 to `final` on a straight line.

    >>> float(Linear(final=0.5)(0.5))
    0.75
    """

    final: float = 0.0

    def validate(self) -> None:
        """Raises a `ValueError` for a negative or infinite `final`."""
        _require_final(self)

    def __call__(self, progress: ArrayLike) -> Array:
        progress = _clipped(progress)
        return (1 - progress) + progress * self.final  # Exact at both ends.


@component
class Cosine(Schedule):
    """From 1 to `final` along half a cosine, flat at both ends.

    References:
        Loshchilov and Hutter, `SGDR: Stochastic Gradient Descent with Warm Restarts
        <https://arxiv.org/abs/1608.03983>`_, 2017.

    >>> float(Cosine()(0.5).round(4))
    0.5
    """

    final: float = 0.0

    def validate(self) -> None:
        """Raises a `ValueError` for a negative or infinite `final`."""
        _require_final(self)

    def __call__(self, progress: ArrayLike) -> Array:
        fall = 0.5 * (1 + jnp.cos(jnp.pi * _clipped(progress)))
        return fall + (1 - fall) * self.final


@component
class Warmup(Schedule):
    """From 0 to 1 on a straight line, then another schedule over what remains.

    >>> warmup = Warmup(fraction=0.2, then=Linear())
    >>> [round(float(warmup(progress)), 4) for progress in (0.0, 0.1, 0.2, 0.6, 1.0)]
    [0.0, 0.5, 1.0, 0.5, 0.0]
    """

    fraction: float = 0.05
    then: Schedule = Constant()

    def validate(self) -> None:
        """Raises a `ValueError` for a `fraction` outside of [0, 1)."""
        require_range(self, "fraction", "a number in [0, 1)", lambda x: 0 <= x < 1)

    def __call__(self, progress: ArrayLike) -> Array:
        progress = _clipped(progress)
        rest = (progress - self.fraction) / (1 - self.fraction)
        rising = progress < self.fraction
        # Where it does not rise, the fraction may be 0: it must not divide.
        rise = progress / jnp.where(rising, self.fraction, 1.0)
        return jnp.where(rising, rise, self.then(rest))


def _clipped(progress: ArrayLike) -> Array:
    return jnp.clip(jnp.asarray(progress, jnp.float32), 0.0, 1.0)


def _require_final(schedule: Linear | Cosine) -> None:
    expected = "a finite number ≥ 0"
    require_range(schedule, "final", expected, lambda x: 0 <= x < math.inf)

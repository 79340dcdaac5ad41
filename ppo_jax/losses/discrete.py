"""Laws of a return with finitely many outcomes, and limits on their changes."""

from typing import NamedTuple

import jax.numpy as jnp
from jax.typing import ArrayLike

from ppo_jax.errors import require_shape
from ppo_jax.losses.clipping import at_least, at_most
from ppo_jax.types import Array

VAR_EPS = 1e-8
"""Number added to variances before the root, so that its gradient is finite at 0."""


class Law(NamedTuple):
    """The outcomes of a distribution and their probabilities."""

    outcomes: Array
    """Possible values, `[..., N]`."""
    probs: Array
    """Probabilities of the outcomes, `[..., N]`; they sum to 1."""

    def mean(self) -> Array:
        """Returns the expected outcome, `[...]`."""
        return jnp.sum(self.probs * self.outcomes, axis=-1)

    def std(self) -> Array:
        """Returns the standard deviation, √(variance + 10⁻⁸), `[...]`."""
        centred = self.outcomes - self.mean()[..., None]
        return jnp.sqrt(jnp.sum(self.probs * centred**2, axis=-1) + VAR_EPS)


def clip_mean(new: Law, old: Law, eps: ArrayLike) -> Array:
    """Shifts a law so that its mean is within ±ε of the mean of an old law.

    All outcomes move by the same amount, so their differences and the spread stay.

    Args:
        new: The predicted law.
        old: The law before the update, with the same leading axes.
        eps: Half-width ε > 0 in the units of the outcomes; may be traced.

    Returns:
        The shifted outcomes of the new law, float32 `[..., N]`.

    Raises:
        ValueError: If the leading axes differ.

    >>> third = jnp.full(3, 1 / 3)
    >>> new, old = Law(jnp.arange(3) * 2.0, third), Law(jnp.arange(3) - 1.0, third)
    >>> print(clip_mean(new, old, 0.5).round(4))
    [-1.5  0.5  2.5]
    """
    return new.outcomes + _shift(new, old, eps)[..., None]


def clip_mean_and_std(
    new: Law, old: Law, eps: ArrayLike, factor: ArrayLike = 2.0
) -> Array:
    """Shifts a law as `clip_mean` does, and narrows it if it became too wide.

    The deviations from the mean are scaled by min(1, factor · σ_old / σ_new).

    Args:
        new: The predicted law.
        old: The law before the update, with the same leading axes.
        eps: Half-width ε > 0 in the units of the outcomes; may be traced.
        factor: Largest σ allowed, in units of σ_old, ≥ 1; may be traced.

    Returns:
        The moved outcomes of the new law, float32 `[..., N]`.

    Raises:
        ValueError: If the leading axes differ.

    >>> third = jnp.full(3, 1 / 3)
    >>> new, old = Law(jnp.arange(3) * 2.0, third), Law(jnp.arange(3) - 1.0, third)
    >>> print(clip_mean_and_std(new, old, 0.5, factor=1.5).round(4))
    [-1.   0.5  2. ]
    """
    scale = at_most(old.std() / new.std() * factor, 1.0)
    narrowing = (scale - 1.0)[..., None] * (new.outcomes - new.mean()[..., None])
    return clip_mean(new, old, eps) + narrowing


def _shift(new: Law, old: Law, eps: ArrayLike) -> Array:
    """Returns the shift of the mean into the range, `[...]`; exactly 0 within it."""
    mean, old_mean = new.mean(), old.mean()
    require_shape("old", old_mean, mean.shape, "the leading axes of `new`")
    excess = at_least(jnp.abs(mean - old_mean) - eps, 0.0)
    return -jnp.sign(mean - old_mean) * excess

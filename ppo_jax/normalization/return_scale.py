"""The scale of returns, which divides targets, and heads that follow it.

Critics see returns as `scale.encode(returns)`, and everything else sees their
predictions as `scale.decode(values)`. One scale holds for a whole rollout and its
update. Then it moves a little towards the returns of that rollout, and the heads are
rescaled so that no prediction changes (PopArt). The scale forgets old returns, because
returns drift while a policy improves.
"""

import dataclasses

import jax.numpy as jnp
from flax import struct

from ppo_jax.arrays import tree
from ppo_jax.component import component
from ppo_jax.component.bounds import Natural, Positive, PositiveShare
from ppo_jax.errors import require_alike
from ppo_jax.normalization.observations import TINY, centre
from ppo_jax.types import Array


@struct.dataclass
class ReturnScale:
    """The scale in force, and the moving moments that it follows; float32 `[]` each."""

    mean: Array
    """Mean in force, which is subtracted from returns to encode them."""
    std: Array
    """Deviation in force, > 0, which then divides them."""
    moving_mean: Array
    """Mean of recent returns."""
    moving_var: Array
    """Variance of recent returns."""
    seen: Array
    """Total weight of all returns so far."""

    def encode(self, returns: Array) -> Array:
        """Converts returns to units of the scale, `[...]`; nothing is clipped."""
        return (returns - self.mean) / self.std

    def decode(self, values: Array) -> Array:
        """Converts values to units of rewards, `[...]`; undoes `encode`."""
        return values * self.std + self.mean


def identity() -> ReturnScale:
    """Returns the scale that changes nothing, before any return was seen.

    >>> identity().encode(jnp.array([2.0, -3.0])).tolist()
    [2.0, -3.0]
    """
    # Arrays of their own, since one that is there twice cannot be donated.
    return ReturnScale(*(jnp.full((), x, jnp.float32) for x in (0, 1, 0, 0, 0)))


def preserve_outputs(
    kernel: Array, bias: Array, old: ReturnScale, new: ReturnScale
) -> tuple[Array, Array]:
    """Returns the linear layer that predicts under `new` what it predicted under `old`.

    W ← W σ / σ′,   b ← (σ b + μ − μ′) / σ′.

    Args:
        kernel: Weights `[...]`; every output is in the units of the scale.
        bias: Biases `[...]`.
        old: The scale (μ, σ) of the outputs so far.
        new: The scale (μ′, σ′) of the outputs from now on.

    Returns:
        Kernel and bias of the same shapes.

    References:
        van Hasselt et al., `Learning Values across Many Orders of Magnitude
        <https://arxiv.org/abs/1602.07714>`_, 2016, proposition 1.

    >>> old, new = identity().replace(std=2.0), identity().replace(mean=1.0, std=4.0)
    >>> kernel, bias = preserve_outputs(jnp.array([3.0]), jnp.array([0.5]), old, new)
    >>> float(kernel[0]), float(bias[0])
    (1.5, 0.0)
    """
    moved = old.mean - new.mean  # First: beside large means a small bias has no digits.
    return kernel * (old.std / new.std), (old.std * bias + moved) / new.std


@component
class ReturnNormalization:
    """A rule by which the scale follows the returns.

    Attributes:
        rate: Weight in (0, 1] of a new rollout in the moving moments.
        max_step: Largest relative change in an update, > 0: of the standard deviation,
            and of the mean as a share of its size or of the deviation.
        min_std: Least standard deviation, > 0.
        min_returns: Returns that have to be seen before the scale moves at all.

    Raises:
        ValueError: At construction, for a number out of its range.
    """

    rate: PositiveShare[float] = 0.2
    max_step: Positive[float] = 0.5
    min_std: Positive[float] = 3e-3
    min_returns: Natural = 256

    def init(self) -> ReturnScale:
        """Returns the scale before the first update: the identity."""
        return identity()

    def update(
        self, scale: ReturnScale, returns: Array, weight: Array | None = None
    ) -> ReturnScale:
        """Returns the scale for the next rollout.

        The first rollout sets the moving moments, later rollouts enter with weight
        `rate`. Then the scale in force moves towards the moments by a limited step.

        Args:
            scale: The scale during the rollout.
            returns: Returns of the rollout, not encoded, `[...]`.
            weight: Weights ≥ 0 of the returns, `[...]`, all 1 by default. Returns
                without weight may be anything, even NaN; without any weight nothing
                changes.

        Returns:
            The new scale; the old one if returns with weight are not finite.

        Raises:
            ValueError: If the shapes differ, or if called eagerly with a non-finite
                return that has weight.
        """
        weight = jnp.ones(returns.shape, jnp.float32) if weight is None else weight
        require_alike(returns=returns, weight=weight)
        weight = weight.astype(jnp.float32).reshape(-1)
        returns = returns.astype(jnp.float32).reshape(-1)
        tree.require_finite(returns=jnp.where(weight > 0, returns, 0.0))
        moved = self._limit(scale, self._follow(scale, returns, weight))
        changed = tree.all_finite(moved) & (weight.sum() > 0)
        return tree.where(changed, moved, scale)

    def _follow(self, scale: ReturnScale, returns: Array, weight: Array) -> ReturnScale:
        """Moves the moments, by the formula of Chan et al. for merged samples."""
        centred, mean = centre(returns, weight)
        total = weight.sum()
        var = jnp.sum(weight * centred**2) / jnp.maximum(total, TINY)
        share = jnp.where(scale.seen > 0, self.rate, 1.0)
        delta = mean - scale.moving_mean
        spread = (1 - share) * scale.moving_var + share * var
        return dataclasses.replace(
            scale,
            moving_mean=scale.moving_mean + share * delta,
            moving_var=spread + share * (1 - share) * delta**2,
            seen=scale.seen + total,
        )

    def _limit(self, old: ReturnScale, moments: ReturnScale) -> ReturnScale:
        """Moves the scale in force towards the moving moments, by a limited step."""
        wanted = jnp.sqrt(moments.moving_var)
        growth = 1 + self.max_step
        std = jnp.clip(wanted, old.std / growth, old.std * growth)
        reach = jnp.maximum(jnp.abs(old.mean), jnp.maximum(wanted, old.std))
        bound = self.max_step * reach
        step = jnp.clip(moments.moving_mean - old.mean, -bound, bound)
        std = jnp.maximum(std, self.min_std)
        moved = dataclasses.replace(moments, mean=old.mean + step, std=std)
        return tree.where(moments.seen >= self.min_returns, moved, moments)

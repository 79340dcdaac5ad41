"""A constraint on an estimate, and the multiplier that enforces it."""

import jax
import jax.numpy as jnp
from jax.typing import ArrayLike

from ppo_jax.errors import require_alike
from ppo_jax.types import Array


def dual_ascent(
    dual: ArrayLike, gap: ArrayLike, learning_rate: ArrayLike, maximum: ArrayLike = 1.0
) -> Array:
    """Takes a step of the multiplier λ of a constraint: clip(λ + η gap, 0, λ_max).

    Args:
        dual: λ before the step `[...]`.
        gap: Limit less estimate, of the same shape, positive while the constraint is
            violated; λ keeps its value where the gap is not finite.
        learning_rate: Step size η ≥ 0.
        maximum: Largest multiplier λ_max.

    Returns:
        λ after the step, float32 `[...]`; a constant for autodiff.

    Raises:
        ValueError: If the shapes differ.

    References:
        Chow et al., `Risk-Constrained Reinforcement Learning with Percentile Risk
        Criteria <https://arxiv.org/abs/1512.01629>`_, 2018.

    >>> float(dual_ascent(0.9, gap=0.5, learning_rate=10.0))
    1.0
    """
    dual, gap = jnp.asarray(dual, jnp.float32), jnp.asarray(gap, jnp.float32)
    require_alike(dual=dual, gap=gap)
    moved = jnp.clip(dual + learning_rate * gap, 0.0, maximum)
    return jax.lax.stop_gradient(jnp.where(jnp.isfinite(gap), moved, dual))

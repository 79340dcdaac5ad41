"""Risk measures of a predicted return distribution."""

import chex
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer
from jax.typing import ArrayLike

from ppo_jax.component import require
from ppo_jax.types import Array


def cvar_weights(num_quantiles: int, alpha: ArrayLike) -> Array:
    """Weights w with CVaR_α = Σᵢ wᵢ qᵢ, for ascending quantiles q₀ ≤ … ≤ q_{N−1}.

    wᵢ = clip(αN − i, 0, 1) / (αN): the exact CVaR of the law that puts mass 1/N on
    every quantile. The weights are never negative and sum to 1, and CVaR is continuous
    and non-decreasing in α, from the lowest quantile (α ≤ 1/N) to the mean (α = 1).

    Args:
        num_quantiles: N.
        alpha: Share α of worst outcomes, a scalar in (0, 1]; may be traced, and is then
            not checked.

    Returns:
        Weights, float32 `[N]`.

    Raises:
        ValueError: If N < 1, or if α is known and not in (0, 1].
        AssertionError: If α is not a scalar.

    References:
        Rockafellar and Uryasev, `Conditional Value-at-Risk for General Loss
        Distributions <https://doi.org/10.1016/S0378-4266(02)00271-6>`_, 2002.

    >>> print(cvar_weights(4, 0.625))
    [0.4 0.4 0.2 0. ]
    """
    require(num_quantiles >= 1, "num_quantiles", num_quantiles, "at least 1")
    chex.assert_rank(alpha, 0)
    if not isinstance(alpha, Tracer):
        require(bool(0 < np.asarray(alpha) <= 1), "alpha", alpha, "a number in (0, 1]")
    mass = jnp.asarray(alpha, jnp.float32) * num_quantiles
    index = jnp.arange(num_quantiles, dtype=jnp.float32)
    return jnp.clip(mass - index, 0.0, 1.0) / mass


def cvar(quantiles: Array, alpha: ArrayLike) -> Array:
    """Conditional value at risk: the mean of the worst share α of outcomes.

    Args:
        quantiles: Equally likely outcomes `[..., N]`, in any order; they are sorted.
        alpha: Share α of worst outcomes, a scalar in (0, 1]; may be traced, and is then
            not checked.

    Returns:
        CVaR_α, float32 `[...]`.

    Raises:
        ValueError: If α is known and not in (0, 1].
        AssertionError: If α is not a scalar.

    References:
        Rockafellar and Uryasev, `Conditional Value-at-Risk for General Loss
        Distributions <https://doi.org/10.1016/S0378-4266(02)00271-6>`_, 2002.

    >>> cvar(jnp.array([3.0, -1.0, 1.0, 5.0]), 0.5).item()
    0.0
    """
    ordered = jnp.sort(jnp.asarray(quantiles, jnp.float32), axis=-1)
    weights = cvar_weights(ordered.shape[-1], alpha)
    return jnp.sum(jnp.broadcast_to(weights, ordered.shape) * ordered, axis=-1)

"""Conditional value at risk of predicted distributions and of samples."""

from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.typing import ArrayLike

from ppo_jax.arrays.tree import require_finite
from ppo_jax.arrays.weights import weighted
from ppo_jax.component import require, require_number
from ppo_jax.errors import require_alike, require_scalar
from ppo_jax.losses.discrete import Law
from ppo_jax.normalization import order
from ppo_jax.types import Array

MIN_TAIL = 10
"""Least number of samples in a tail at which its mean is not just noise."""


def cvar_weights(num_quantiles: int, alpha: ArrayLike) -> Array:
    """Returns weights w with CVaR_α = Σᵢ wᵢ qᵢ, for quantiles q₀ ≤ … ≤ q_{N−1}.

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
        ValueError: If N < 1, or if α is no scalar, or known and not in (0, 1].

    References:
        Rockafellar and Uryasev, `Conditional Value-at-Risk for General Loss
        Distributions <https://doi.org/10.1016/S0378-4266(02)00271-6>`_, 2002.

    >>> print(cvar_weights(4, 0.625))
    [0.4 0.4 0.2 0. ]
    """
    mass = _mass(num_quantiles, alpha)
    index = jnp.arange(num_quantiles, dtype=jnp.float32)
    return jnp.clip(mass - index, 0.0, 1.0) / mass


def linear_cvar_weights(num_quantiles: int, alpha: ArrayLike) -> Array:
    """Returns weights w with CVaR_α = Σᵢ wᵢ qᵢ, for piecewise-linear quantiles.

    This CVaR is the integral over [0, α], divided by α, of the lines through the
    quantiles at their midpoints (i + ½) / N. The first and the last line are prolonged
    to levels 0 and 1. It is closer to that of a smooth law than with `cvar_weights`,
    but at α = 1 it is not the mean: the outermost quantiles count more. For α < 1/N a
    weight would be negative, so the result is the lowest quantile, which is also the
    integral at α = 1/N.

    Args:
        num_quantiles: N.
        alpha: Share α of worst outcomes, a scalar in (0, 1]; may be traced, and is then
            not checked.

    Returns:
        Weights ≥ 0 with sum 1, float32 `[N]`.

    Raises:
        ValueError: If N < 1, or if α is no scalar, or known and not in (0, 1].

    >>> print(linear_cvar_weights(4, 1.0))
    [0.28125 0.21875 0.21875 0.28125]
    """
    mass = _mass(num_quantiles, alpha)
    if num_quantiles == 1:
        return jnp.ones(1, jnp.float32)
    segment = np.arange(num_quantiles - 1)  # From quantile i, at 0, to i + 1, at 1.
    start = np.where(segment == 0, -0.5, 0.0).astype(np.float32)
    end = np.where(segment == num_quantiles - 2, 1.5, 1.0).astype(np.float32)
    stop = jnp.clip(mass - 0.5 - segment, start, end)
    upper = (stop**2 - start**2) / 2
    lower = stop - start - upper
    none = jnp.zeros(1, jnp.float32)
    area = jnp.concatenate([lower, none]) + jnp.concatenate([none, upper])
    return jnp.where(mass < 1, cvar_weights(num_quantiles, alpha), area / mass)


def cvar(
    quantiles: Array, alpha: ArrayLike, weights: Callable[..., Array] = cvar_weights
) -> Array:
    """Returns the conditional value at risk: the mean of the worst share α of outcomes.

    Args:
        quantiles: Equally likely outcomes `[..., N]`, in any order; they are sorted.
        alpha: Share α of worst outcomes, a scalar in (0, 1]; may be traced, and is then
            not checked.
        weights: Rule for the weights, `cvar_weights` or `linear_cvar_weights`.

    Returns:
        CVaR_α, float32 `[...]`.

    Raises:
        ValueError: If α is no scalar, or known and not in (0, 1].

    References:
        Rockafellar and Uryasev, `Conditional Value-at-Risk for General Loss
        Distributions <https://doi.org/10.1016/S0378-4266(02)00271-6>`_, 2002.

    >>> cvar(jnp.array([3.0, -1.0, 1.0, 5.0]), 0.5).item()
    0.0
    """
    ordered = jnp.sort(jnp.asarray(quantiles, jnp.float32), axis=-1)
    share = weights(ordered.shape[-1], alpha)
    return jnp.sum(weighted(jnp.broadcast_to(share, ordered.shape), ordered), axis=-1)


def law_cvar(law: Law, alpha: ArrayLike) -> Array:
    """Returns the conditional value at risk of outcomes that are not equally likely.

    It is Σᵢ max(0, min(Fᵢ, α) − Fᵢ₋₁) zᵢ / α with Fᵢ the probability of outcomes 0 to
    i. The total weight is used in place of α, so that rounded probabilities do no harm.

    Args:
        law: Outcomes in ascending order and their probabilities `[..., N]`.
        alpha: Share α of worst outcomes, a scalar in (0, 1]; may be traced, and is then
            not checked.

    Returns:
        CVaR_α, float32 `[...]`.

    Raises:
        ValueError: If α is no scalar, or known and not in (0, 1].

    >>> law = Law(jnp.arange(-1.0, 1.1, 0.5), jnp.array([0.1, 0.2, 0.4, 0.2, 0.1]))
    >>> f"{law_cvar(law, 0.2):.4f}"
    '-0.7500'
    """
    _require_share(alpha)
    probs = jnp.asarray(law.probs, jnp.float32)
    before = jnp.cumsum(probs, axis=-1) - probs
    weights = jnp.clip(alpha - before, 0.0, probs)
    total = jnp.maximum(weights.sum(axis=-1), np.finfo(np.float32).tiny)
    return jnp.sum(weighted(weights, law.outcomes), axis=-1) / total


class EmpiricalTail(NamedTuple):
    """The worst share of samples, float32 `[]` each; all 0 without samples."""

    cvar: Array
    """Mean of the tail's samples."""
    var: Array
    """The value at risk: the best sample of the tail."""
    size: Array
    """Number of samples in the tail; below `MIN_TAIL` the mean is noise."""
    low: Array
    """Lower bound to which smaller ones of all samples were raised."""
    high: Array
    """Upper bound to which larger ones of all samples were lowered."""


def empirical_cvar(
    samples: Array,
    alpha: ArrayLike,
    valid: Array | None = None,
    winsor: ArrayLike = 0.0,
) -> EmpiricalTail:
    """Returns the conditional value at risk of samples: the mean of the lowest ⌈α n⌉.

    Args:
        samples: Rewards or returns `[...]`, all of one law.
        alpha: Share α of worst outcomes, a scalar in (0, 1]; may be traced, and is then
            not checked.
        valid: Whether each sample counts, bool `[...]`, all by default. The others may
            be anything, even NaN.
        winsor: Share of samples, a scalar in [0, ½), that are first moved at either end
            to the quantile there, linearly interpolated. It moves the estimate up; may
            be traced, and is then not checked.

    Returns:
        The mean of the tail, its largest sample, its size ≥ 1, and the bounds of
        winsorising; 0 if n = 0.

    Raises:
        ValueError: If α is known and not in (0, 1], `winsor` is known and not in
            [0, ½), one of both is no scalar, shapes differ, a valid sample is known and
            not finite, or there are no samples.

    >>> tail = empirical_cvar(jnp.array([0.01, -0.02, 0.01, -0.03]), 0.5)
    >>> f"{tail.cvar:.3f} {tail.var:.2f} {tail.size:.0f}"
    '-0.025 -0.02 2'
    """
    require(samples.size >= 1, "samples", samples, "at least 1")
    _require_share(alpha)
    require_scalar(winsor=winsor)
    require_number("winsor", winsor, "a number in [0, ½)", lambda x: 0 <= x < 0.5)
    valid = jnp.ones(samples.shape, bool) if valid is None else valid
    require_alike(samples=samples, valid=valid)
    samples = jnp.where(valid, samples, 0.0).astype(jnp.float32)
    require_finite(samples=samples)
    number = valid.sum()
    count = number.astype(jnp.float32)
    exact = alpha * count * (1 - 1e-6)  # α = 0.1 of 30 is 3, whatever float32 says.
    size = jnp.minimum(jnp.maximum(jnp.ceil(exact), 1.0), count)
    last = jnp.maximum(count - 1, 0.0)
    ends = jnp.stack([winsor * last, (1.0 - winsor) * last])
    lower, upper = jnp.floor(ends), jnp.ceil(ends)
    ranks = jnp.concatenate([lower, upper, jnp.maximum(size - 1, 0.0)[None]])
    # Beyond 2²⁴ samples a float32 rounds the last rank to one that there is not.
    ranks = jnp.minimum(ranks.astype(jnp.int32), jnp.maximum(number - 1, 0))
    found = order.smallest(samples, ranks, valid)
    below, above, largest = jnp.split(jnp.where(count > 0, found, 0.0), [2, 4])
    low, high = below + (ends - lower) * (above - below)
    var = jnp.clip(largest[0], low, high)
    samples = jnp.clip(samples, low, high)
    less = valid & (samples < var)
    total = jnp.sum(jnp.where(less, samples, 0.0)) + (size - less.sum()) * var
    mean = total / jnp.maximum(size, 1.0)
    return EmpiricalTail(mean, var, size, low, high)


def tail_advantage(outcome: Array, value_at_risk: ArrayLike, alpha: ArrayLike) -> Array:
    """Returns each sample's part of CVaR_α: 1{R ≤ VaR} (R − VaR) / α.

    Added to an advantage with a coefficient, it makes actions with outcomes in the tail
    less likely: this follows the gradient of the policy's CVaR. It reaches no critic.

    Args:
        outcome: Samples R `[...]`, in the units of VaR.
        value_at_risk: The α-quantile of the samples, a scalar.
        alpha: Share α of worst outcomes, a scalar in (0, 1]; may be traced, and is then
            not checked.

    Returns:
        Numbers ≤ 0 without gradient, float32 `[...]`.

    Raises:
        ValueError: If α or VaR is no scalar, or α is known and not in (0, 1].

    References:
        Tamar et al., `Optimizing the CVaR via Sampling
        <https://arxiv.org/abs/1404.3862>`_, 2015.

    >>> tail_advantage(jnp.array([-3.0, -1.0, 4.0]), -1.0, 0.5).tolist()
    [-4.0, 0.0, 0.0]
    """
    _require_share(alpha)
    require_scalar(value_at_risk=value_at_risk)
    short = jnp.minimum(jnp.asarray(outcome, jnp.float32) - value_at_risk, 0.0)
    return jax.lax.stop_gradient(short / alpha)


def _mass(num_quantiles: int, alpha: ArrayLike) -> Array:
    """Returns αN, the number of quantiles that make up the worst share α."""
    require(num_quantiles >= 1, "num_quantiles", num_quantiles, "at least 1")
    _require_share(alpha)
    return jnp.asarray(alpha, jnp.float32) * num_quantiles


def _require_share(alpha: ArrayLike) -> None:
    """Checks that α is a scalar and, if it is known, in (0, 1]."""
    require_scalar(alpha=alpha)
    require_number("alpha", alpha, "a number in (0, 1]", lambda x: 0 < x <= 1)

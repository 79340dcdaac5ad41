"""Policy losses, and estimates of a policy's distance from an old one.

`log_ratio` is always log π_new(a|s) − log π_old(a|s), for actions drawn from π_old.
"""

import jax
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer
from jax.typing import ArrayLike

from ppo_jax.component import require
from ppo_jax.errors import require_alike, require_scalar
from ppo_jax.losses.clipping import at_least, at_most, within
from ppo_jax.types import Array

LOG_RATIO_LIMIT = 20.0
"""Log-ratios are clamped to ± this before exp; the gradient of clamped ones is 0."""


def clipped_surrogate_loss(
    log_ratio: Array,
    advantage: Array,
    clip_eps: ArrayLike,
    dual_clip: ArrayLike | None = None,
) -> Array:
    """Returns PPO's clipped surrogate, to be minimised.

    −min(r A, clip(r, 1 − ε, 1 + ε) A),   r = exp(log_ratio);   at most −c A with a dual
    clip.

    A NaN stays NaN, so that a caller sees it; an infinite log-ratio is clamped.

    Args:
        log_ratio: log π_new(a|s) − log π_old(a|s) `[...]`.
        advantage: Advantages A `[...]`.
        clip_eps: Clip range ε > 0, a scalar; may be traced.
        dual_clip: Bound c > 1 for negative advantages, whose loss is unbounded
            otherwise, a scalar; may be traced.

    Returns:
        Loss per example, float32 `[...]`.

    Raises:
        ValueError: If the shapes differ, or if a bound is not a scalar.

    References:
        Schulman et al., `Proximal Policy Optimization Algorithms
        <https://arxiv.org/abs/1707.06347>`_, 2017, equation 7.

    >>> log_ratio, advantage = jnp.log(jnp.array([1.5, 1.5])), jnp.array([1.0, -1.0])
    >>> print(clipped_surrogate_loss(log_ratio, advantage, 0.2))
    [-1.2  1.5]
    """
    require_alike(log_ratio=log_ratio, advantage=advantage)
    require_scalar(clip_eps=clip_eps)
    ratio = jnp.exp(_clamp(log_ratio))
    clipped = within(ratio, 1 - clip_eps, 1 + clip_eps)
    advantage = jnp.asarray(advantage, jnp.float32)
    gain = at_most(advantage * ratio, advantage * clipped)
    if dual_clip is not None:
        require_scalar(dual_clip=dual_clip)
        gain = jnp.where(advantage < 0, at_least(gain, dual_clip * advantage), gain)
    return -gain


def approx_kl(log_ratio: Array) -> Array:
    """Estimates KL(π_old ‖ π_new) per example by k3 = r − 1 − log r.

    It is unbiased as long as no log-ratio is clamped, never negative, and has far less
    variance than k1.

    Args:
        log_ratio: log π_new(a|s) − log π_old(a|s) `[...]`.

    Returns:
        Estimate per example, float32 `[...]`; average it over valid examples.

    References:
        Schulman, `Approximating KL Divergence
        <http://joschu.net/blog/kl-approx.html>`_, 2020.

    >>> f"{approx_kl(jnp.array([0.1, -0.2, 0.05, 0.0])).mean():.8f}"
    '0.00629319'
    """
    x = _clamp(log_ratio)
    return jnp.expm1(x) - x  # exp(x) − 1 − x would be negative for small x.


def approx_kl_k1(log_ratio: Array) -> Array:
    """Estimates KL(π_old ‖ π_new) per example by k1 = −log r.

    It is unbiased as long as no log-ratio is clamped, but noisy, and negative for many
    examples. Its gradient is an unbiased estimate of the gradient of KL.

    Args:
        log_ratio: log π_new(a|s) − log π_old(a|s) `[...]`.

    Returns:
        Estimate per example, float32 `[...]`; average it over valid examples.

    References:
        Schulman, `Approximating KL Divergence
        <http://joschu.net/blog/kl-approx.html>`_, 2020.

    >>> f"{approx_kl_k1(jnp.array([0.1, -0.2, 0.05, 0.0])).mean():.4f}"
    '0.0125'
    """
    return -_clamp(log_ratio)


def advantage_weights(
    advantage: Array, temperature: ArrayLike, max_weight: ArrayLike = 100.0
) -> Array:
    """Returns weights of advantage-weighted regression, exp(min(A / β, ln w_max)).

    The regression minimises −weight · log π(a|s): it imitates actions, the better ones
    more. The exponent is bounded before exp, so that nothing overflows; no gradient
    flows through a weight.

    Args:
        advantage: Advantages A `[...]`; ±∞ is allowed.
        temperature: β > 0; may be traced, and is then not checked.
        max_weight: Largest weight w_max > 0; may be traced, and is then not checked.

    Returns:
        Weights in [0, w_max], float32 `[...]`; a traced NaN stays NaN.

    Raises:
        ValueError: If an advantage is known and NaN, or another argument is known and
            not > 0.

    References:
        Peng et al., `Advantage-Weighted Regression
        <https://arxiv.org/abs/1910.00177>`_, 2019.

    >>> weights = advantage_weights(jnp.array([-jnp.inf, 0.0, jnp.inf]), 5.0)
    >>> weights.tolist()
    [0.0, 1.0, 100.0]
    """
    for name, value in (("temperature", temperature), ("max_weight", max_weight)):
        if not isinstance(value, Tracer):
            require(bool(np.all(np.asarray(value) > 0)), name, value, "a number > 0")
    if not isinstance(advantage, Tracer):
        known = not np.isnan(np.asarray(advantage, np.float32)).any()
        require(known, "advantage", advantage, "numbers, not NaN")
    scaled = jnp.asarray(advantage, jnp.float32) / temperature
    weight = jnp.exp(jnp.minimum(scaled, jnp.log(max_weight)))
    return jax.lax.stop_gradient(jnp.minimum(weight, max_weight))  # After rounding.


def _clamp(log_ratio: Array) -> Array:
    log_ratio = jnp.asarray(log_ratio, jnp.float32)
    return within(log_ratio, -LOG_RATIO_LIMIT, LOG_RATIO_LIMIT)

"""Policy losses, and estimates of how far a policy has moved.

`log_ratio` is always log π_new(a|s) − log π_old(a|s), for actions drawn from π_old.
"""

import chex
import jax.numpy as jnp
from jax.typing import ArrayLike

from ppo_jax.types import Array

LOG_RATIO_LIMIT = 20.0
"""Log-ratios are clamped to ± this before exp, where their gradient becomes 0."""


def clipped_surrogate_loss(
    log_ratio: Array, advantage: Array, clip_eps: ArrayLike
) -> Array:
    """PPO's clipped surrogate, to be minimised.

    −min(r A, clip(r, 1 − ε, 1 + ε) A),   r = exp(log_ratio).

    A NaN stays one, so that a caller sees it; an infinite log-ratio is clamped.

    Args:
        log_ratio: log π_new(a|s) − log π_old(a|s) `[...]`.
        advantage: Advantages A `[...]`.
        clip_eps: Clip range ε > 0; may be traced.

    Returns:
        Loss per example, float32 `[...]`.

    Raises:
        AssertionError: If the shapes differ.

    References:
        Schulman et al., `Proximal Policy Optimization Algorithms
        <https://arxiv.org/abs/1707.06347>`_, 2017, equation 7.

    >>> log_ratio, advantage = jnp.log(jnp.array([1.5, 1.5])), jnp.array([1.0, -1.0])
    >>> print(clipped_surrogate_loss(log_ratio, advantage, 0.2))
    [-1.2  1.5]
    """
    chex.assert_equal_shape([log_ratio, advantage])
    ratio = jnp.exp(_clamp(log_ratio))
    clipped = jnp.clip(ratio, 1 - clip_eps, 1 + clip_eps)
    advantage = jnp.asarray(advantage, jnp.float32)
    return -jnp.minimum(advantage * ratio, advantage * clipped)


def approx_kl(log_ratio: Array) -> Array:
    """Estimates KL(π_old ‖ π_new) per example by k3 = r − 1 − log r.

    Unbiased as long as no log-ratio is clamped, never negative, and of far less
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

    Unbiased as long as no log-ratio is clamped, but noisy, and negative for many
    examples; its gradient is an unbiased estimate of the KL's.

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


def _clamp(log_ratio: Array) -> Array:
    log_ratio = jnp.asarray(log_ratio, jnp.float32)
    return jnp.clip(log_ratio, -LOG_RATIO_LIMIT, LOG_RATIO_LIMIT)

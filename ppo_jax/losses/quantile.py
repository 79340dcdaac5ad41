"""Losses of a critic that predicts quantiles of the return."""

import math

import jax
import jax.numpy as jnp
from jax.typing import ArrayLike

from ppo_jax.component import require, require_number
from ppo_jax.errors import require_scalar, require_shape
from ppo_jax.losses.clipping import at_most
from ppo_jax.types import Array


def quantile_midpoints(num_quantiles: int) -> Array:
    """Returns the levels τᵢ = (i + ½) / N of the quantiles, float32 `[N]`.

    Raises:
        ValueError: If there is not at least one quantile.

    References:
        Dabney et al., `Distributional Reinforcement Learning with Quantile Regression
        <https://arxiv.org/abs/1710.10044>`_, 2018, lemma 2.

    >>> quantile_midpoints(4).tolist()
    [0.125, 0.375, 0.625, 0.875]
    """
    require(num_quantiles >= 1, "num_quantiles", num_quantiles, "at least 1")
    return (jnp.arange(num_quantiles, dtype=jnp.float32) + 0.5) / num_quantiles


def quantile_huber_loss(
    quantiles: Array, target: Array, kappa: ArrayLike = 1.0
) -> Array:
    """Returns the loss of quantile regression with a Huber kernel.

    ρᵢ(u) = |τᵢ − 1{u < 0}| · L_κ(u),   u = target − quantileᵢ,   τᵢ = (i + ½) / N,
    L_κ(u) = ½ u² where |u| ≤ κ, otherwise κ (|u| − ½ κ).

    As in QR-DQN the kernel is not divided by κ (IQN divides it): far from the target
    the gradient grows with κ. An underestimate (u > 0) costs τᵢ, an overestimate
    1 − τᵢ.

    Args:
        quantiles: Predicted quantiles `[..., N]`, in any order of values.
        target: Sampled returns `[...]` or `[..., 1]`; no gradient flows into them.
        kappa: Huber threshold κ > 0, a scalar; may be traced.

    Returns:
        Loss per example, averaged over quantiles, float32 `[...]`.

    Raises:
        ValueError: If the target has another shape, κ is not a scalar, or κ is known
            and not a positive number.

    References:
        Dabney et al., `Distributional Reinforcement Learning with Quantile Regression
        <https://arxiv.org/abs/1710.10044>`_, 2018, equation 10.

    >>> f"{quantile_huber_loss(jnp.arange(4.0), jnp.array(1.5)):.7f}"
    '0.0859375'
    """
    require_scalar(kappa=kappa)
    require_number("kappa", kappa, "a positive number", lambda x: 0 < x < math.inf)
    *batch, num_quantiles = quantiles.shape
    if getattr(target, "shape", None) == (*batch, 1):
        target = target[..., 0]
    require_shape("target", target, (*batch,), "one per row of `quantiles`")
    target = jax.lax.stop_gradient(jnp.asarray(target, jnp.float32))
    error = target[..., None] - jnp.asarray(quantiles, jnp.float32)
    size = jnp.abs(error)
    near = at_most(size, kappa)
    huber = near * (size - 0.5 * near)  # Both branches, and no square of a huge error.
    tau = jnp.broadcast_to(quantile_midpoints(num_quantiles), error.shape)
    weight = jnp.where(error < 0, 1 - tau, tau)
    return jnp.mean(weight * huber, axis=-1)

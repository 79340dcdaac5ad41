"""Losses of a critic that predicts one number."""

import jax
import jax.numpy as jnp
from jax.typing import ArrayLike

from ppo_jax.errors import require_alike, require_scalar
from ppo_jax.losses.clipping import within
from ppo_jax.types import Array


def squared_error(value: Array, target: Array) -> Array:
    """Returns half the squared error, ½ (target − value)².

    The gradient with respect to `value` is thus value − target.

    Args:
        value: Predictions `[...]`.
        target: Returns `[...]`; no gradient flows into them.

    Returns:
        Loss per example, float32 `[...]`.

    Raises:
        ValueError: If the shapes differ.

    >>> squared_error(jnp.array([1.0, 2.0]), jnp.array([4.0, 2.0])).tolist()
    [4.5, 0.0]
    """
    require_alike(value=value, target=target)
    target = jax.lax.stop_gradient(jnp.asarray(target, jnp.float32))
    return 0.5 * jnp.square(target - jnp.asarray(value, jnp.float32))


def clip_around(value: Array, old: Array, eps: ArrayLike) -> Array:
    """Keeps every prediction within ±ε of the prediction made before the update.

    PPO's value clipping is max(loss(value, target), loss(clip_around(…), target)) per
    example; the target is never clipped.

    Args:
        value: Predictions `[...]`.
        old: Predictions before the update `[...]`.
        eps: Half-width ε > 0 in the units of the predictions, a scalar; may be traced.

    Returns:
        Clipped predictions, float32 `[...]`; the gradient is 0 where they were moved.

    Raises:
        ValueError: If the shapes differ, or if ε is not a scalar.

    References:
        Huang et al., `The 37 Implementation Details of Proximal Policy Optimization
        <https://iclr-blog-track.github.io/2022/03/25/ppo-implementation-details/>`_,
        2022, detail 9.

    >>> clip_around(jnp.array([1.5, -3.0]), jnp.array([1.0, 0.0]), 1.0).tolist()
    [1.5, -1.0]
    """
    require_alike(value=value, old=old)
    require_scalar(eps=eps)
    old = jnp.asarray(old, jnp.float32)
    return within(jnp.asarray(value, jnp.float32), old - eps, old + eps)

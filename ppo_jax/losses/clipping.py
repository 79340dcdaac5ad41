"""Limits whose gradients cost no kernels.

They compute what `jnp.minimum`, `jnp.maximum` and `jnp.clip` do, but a number at its
limit has the whole gradient. The functions of JAX halve the gradient there, and XLA
runs a kernel for the division.
"""

import jax.numpy as jnp
from jax.typing import ArrayLike

from ppo_jax.types import Array


def at_most(x: Array, high: ArrayLike) -> Array:
    """Returns the lesser of a number and its limit; NaN stays NaN.

    >>> at_most(jnp.array([-3.0, 0.5, jnp.nan]), 0.0).tolist()
    [-3.0, 0.0, nan]
    """
    return jnp.where(x > high, high, x)


def at_least(x: Array, low: ArrayLike) -> Array:
    """Returns the greater of a number and its limit; NaN stays NaN.

    >>> at_least(jnp.array([-3.0, 0.5, jnp.nan]), 0.0).tolist()
    [0.0, 0.5, nan]
    """
    return jnp.where(x < low, low, x)


def within(x: Array, low: ArrayLike, high: ArrayLike) -> Array:
    """Returns a number, or the limit that it has passed; NaN stays NaN.

    >>> within(jnp.array([-3.0, 0.5, jnp.nan]), -1.0, 1.0).tolist()
    [-1.0, 0.5, nan]
    """
    return at_most(at_least(x, low), high)

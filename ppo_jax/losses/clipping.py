"""Limits whose gradients cost no kernels.

As `jnp.minimum`, `jnp.maximum` and `jnp.clip`, but a number at its limit has the whole
gradient. Those halve it there, and XLA runs a kernel to divide.
"""

import jax.numpy as jnp
from jax.typing import ArrayLike

from ppo_jax.types import Array


def at_most(x: Array, high: ArrayLike) -> Array:
    """A number, or what it exceeds.

    >>> at_most(jnp.array([-3.0, 0.5, jnp.nan]), 0.0).tolist()
    [-3.0, 0.0, nan]
    """
    return jnp.where(x > high, high, x)


def at_least(x: Array, low: ArrayLike) -> Array:
    """A number, or what it falls short of.

    >>> at_least(jnp.array([-3.0, 0.5, jnp.nan]), 0.0).tolist()
    [0.0, 0.5, nan]
    """
    return jnp.where(x < low, low, x)


def within(x: Array, low: ArrayLike, high: ArrayLike) -> Array:
    """A number, or the limit that it passed.

    >>> within(jnp.array([-3.0, 0.5, jnp.nan]), -1.0, 1.0).tolist()
    [-1.0, 0.5, nan]
    """
    return at_most(at_least(x, low), high)

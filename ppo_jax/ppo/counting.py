"""Whole numbers that only grow: they stop at the largest one, and never wrap."""

import jax.numpy as jnp
from jax.typing import ArrayLike

from ppo_jax.types import Array

MOST = jnp.iinfo(jnp.int32).max


def add(count: Array, more: ArrayLike = 1) -> Array:
    """A count and `more` ≥ 0, int32 of the same shape.

    >>> [int(add(jnp.int32(count), 5)) for count in (1, 2**31 - 3)]
    [6, 2147483647]
    """
    return count + jnp.minimum(more, MOST - count)

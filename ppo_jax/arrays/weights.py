"""Products with weights, where what has none may be anything."""

import jax.numpy as jnp

from ppo_jax.types import Array


def weighted(weight: Array, x: Array) -> Array:
    """`weight · x`, where a weight of 0 stops even NaN and ±∞.

    >>> weighted(jnp.array([0.0, 2.0]), jnp.array([jnp.nan, 3.0])).tolist()
    [0.0, 6.0]
    """
    return jnp.where(weight == 0, 0.0, weight * x)

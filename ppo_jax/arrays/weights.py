"""Products with weights, where numbers without weight may be anything."""

import jax.numpy as jnp

from ppo_jax.types import Array


def weighted(weight: Array, x: Array) -> Array:
    """Returns `weight · x`; with a weight of 0 it is 0 even for NaN and ±∞.

    >>> weighted(jnp.array([0.0, 2.0]), jnp.array([jnp.nan, 3.0])).tolist()
    [0.0, 6.0]
    """
    return jnp.where(weight == 0, 0.0, weight * x)

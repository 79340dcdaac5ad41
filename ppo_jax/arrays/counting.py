"""Counts that stop at the largest int32 instead of wrapping, and shares of counts."""

from typing import Any

import jax.numpy as jnp
from jax.typing import ArrayLike

from ppo_jax.types import Array

MOST = jnp.iinfo(jnp.int32).max


def add(count: Array, more: ArrayLike = 1) -> Array:
    """Adds `more` ≥ 0 to a count, int32 of the same shape.

    >>> [int(add(jnp.int32(count), 5)) for count in (1, 2**31 - 3)]
    [6, 2147483647]
    """
    return count + jnp.minimum(more, MOST - count).astype(count.dtype)


def divisors(count: int, least: int = 1) -> list[int]:
    """Returns the divisors of a count that are at least `least`, in ascending order.

    >>> divisors(12, 3)
    [3, 4, 6, 12]
    """
    return [n for n in range(least, count + 1) if count % n == 0]


def share_of(count: Any, share: Any) -> Any:
    """Returns `share` of a count, rounded down.

    >>> share_of(100, 0.53)
    53.0
    """
    return (count * share + 1e-4) // 1  # 0.53 · 100 is just below 53 in float32.

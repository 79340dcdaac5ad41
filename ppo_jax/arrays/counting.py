"""Counts: they stop at the largest whole number, and never wrap; and their shares."""

from typing import Any

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


def divisors(count: int, least: int) -> list[int]:
    """What divides a count and is at least `least`, the smallest first.

    >>> divisors(12, 3)
    [3, 4, 6, 12]
    """
    return [n for n in range(least, count + 1) if count % n == 0]


def share_of(count: Any, share: Any) -> Any:
    """How many a share of some is, rounded down.

    >>> share_of(100, 0.53)
    53.0
    """
    return (count * share + 1e-4) // 1  # 0.53 · 100 is just below 53 in float32.

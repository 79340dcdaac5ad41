"""Random orders, made without sorting.

A random bijection computes, for each place by itself, the number that stands there. It
takes some dozens of operations in a short loop; sorting 8192 numbers takes a CPU eight
times as long, and a GPU many passes. Numbers are rows and columns of a grid that is
hardly larger than the count of numbers. A number that falls outside of the count is
sent on until it does not. Each number may come to stand anywhere; but if the numbers
fill a grid of odd sides, half of all orders never occur.

References:
    Black and Rogaway, `Ciphers with Arbitrary Finite Domains
    <https://doi.org/10.1007/3-540-45760-7_9>`_, 2002: the generalised Feistel network.
    Mitchell et al., `Bandwidth-Optimal Random Shuffling for GPUs
    <https://arxiv.org/abs/2106.06161>`_, 2022: its use for orders, in 24 rounds.
"""

import math

import jax
import jax.numpy as jnp
import numpy as np

from ppo_jax.types import Array, Key

_ROUNDS = 24
_UNSENT = np.uint32(2**31)
"""A bit that marks numbers which have yet to be sent for the first time."""


def permutation(key: Key, count: int) -> Array:
    """Returns a random order of 0 to count − 1, int32 `[count]`, for up to 2³⁰.

    >>> sorted(permutation(jax.random.key(0), 5).tolist())
    [0, 1, 2, 3, 4]
    """
    rows = max(2, math.isqrt(count))
    columns = max(2, -(-count // rows))
    keys = jax.random.bits(key, (_ROUNDS,), jnp.uint32).reshape(-1, 2)

    def send(x):
        sent = _bijection(keys, rows, columns, x & ~_UNSENT)
        return jnp.where(x >= count, sent, x)

    start = jnp.arange(count, dtype=jnp.uint32) | _UNSENT
    order = jax.lax.while_loop(lambda x: (x >= count).any(), send, start)
    return order.astype(jnp.int32)


def _bijection(keys: Array, rows: int, columns: int, x: Array) -> Array:
    """Moves row and column in turns, each by a random function of the other."""

    def both(place, keys):
        row, column = place
        row = _moved(row, _hash(column ^ keys[0]), rows)
        column = _moved(column, _hash(row ^ keys[1]), columns)
        return (row, column), None

    place = x // columns, x % columns
    (row, column), _ = jax.lax.scan(both, place, keys)
    return row * np.uint32(columns) + column


def _moved(place: Array, share: Array, size: int) -> Array:
    """Moves a place on by `share` / 2¹⁶ of the size, modulo the size."""
    moved = place + (share * np.uint32(size) >> 16)
    return jnp.minimum(moved, moved - np.uint32(size))  # Below 0, uint32 is large.


def _hash(x: Array) -> Array:
    """Returns 16 bits that depend on all of x: MurmurHash3's end (Appleby, 2008)."""
    x = (x ^ x >> 16) * np.uint32(0x85EBCA6B)
    return (x ^ x >> 13) * np.uint32(0xC2B2AE35) >> 16

"""Random orders, made without sorting.

A random bijection says of every place alone what stands there: some dozens of
operations in a short loop, where a CPU sorts 8192 numbers eight times as long, and a
GPU in many passes. Numbers are rows and columns of a grid that is hardly larger than
what there is to put in order; what falls outside is sent on until it does not. Each
number may come to stand anywhere; where they fill a grid of odd sides, half of all
orders never come.

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
"""A bit of what has yet to be sent for the first time."""


def permutation(key: Key, count: int) -> Array:
    """A random order of 0 to count − 1, int32 `[count]`, for up to 2³⁰.

    >>> sorted(permutation(jax.random.key(0), 5).tolist())
    [0, 1, 2, 3, 4]
    """
    rows = max(2, math.isqrt(count))
    columns = max(2, -(-count // rows))
    keys = jax.random.bits(key, (_ROUNDS,)).reshape(-1, 2)

    def send(x):
        sent = _bijection(keys, rows, columns, x & ~_UNSENT)
        return jnp.where(x >= count, sent, x)

    start = jnp.arange(count, dtype=jnp.uint32) | _UNSENT
    order = jax.lax.while_loop(lambda x: (x >= count).any(), send, start)
    return order.astype(jnp.int32)


def _bijection(keys: Array, rows: int, columns: int, x: Array) -> Array:
    """Row and column in turns move on by what a random function says of the other."""

    def both(place, keys):
        row, column = place
        row = _moved(row, _hash(column ^ keys[0]), rows)
        column = _moved(column, _hash(row ^ keys[1]), columns)
        return (row, column), None

    place = x // columns, x % columns
    (row, column), _ = jax.lax.scan(both, place, keys)
    return row * np.uint32(columns) + column


def _moved(place: Array, share: Array, size: int) -> Array:
    """On by a share of 2¹⁶ of the size, and round."""
    moved = place + (share * np.uint32(size) >> 16)
    return jnp.minimum(moved, moved - np.uint32(size))  # Below 0 is large.


def _hash(x: Array) -> Array:
    """16 bits that depend on all of x, the end of MurmurHash3 (Appleby, 2008)."""
    x = (x ^ x >> 16) * np.uint32(0x85EBCA6B)
    return (x ^ x >> 13) * np.uint32(0xC2B2AE35) >> 16

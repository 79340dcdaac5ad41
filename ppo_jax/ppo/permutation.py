"""Random orders, made without sorting.

A random bijection says of every place alone what stands there: some dozens of
operations in one kernel, where a CPU sorts 8192 numbers eight times as long, and a GPU
in many passes. Numbers are rows and columns of a grid that is hardly larger than what
there is to put in order; what falls outside is sent on until it does not, which keeps
orders equally likely.

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


def permutation(key: Key, count: int) -> Array:
    """A random order of 0 to count − 1, int32 `[count]`, for up to 2³⁰.

    >>> sorted(permutation(jax.random.key(0), 5).tolist())
    [0, 1, 2, 3, 4]
    """
    rows = max(2, math.isqrt(count))
    columns = max(2, -(-count // rows))
    keys = jax.random.bits(key, (_ROUNDS,))

    @jax.jit  # Traced once.
    def sent(x):
        return _bijection(keys, rows, columns, x)

    order = jax.lax.while_loop(
        lambda x: (x >= count).any(),
        lambda x: jnp.where(x >= count, sent(x), x),
        sent(jnp.arange(count, dtype=jnp.uint32)),
    )
    return order.astype(jnp.int32)


def _bijection(keys: Array, rows: int, columns: int, x: Array) -> Array:
    """Row and column in turns move on by what a random function says of the other."""
    places, sizes = [x // columns, x % columns], (rows, columns)
    for i in range(_ROUNDS):
        this, size = i % 2, np.uint32(sizes[i % 2])
        moved = places[this] + (_hash(places[1 - this] ^ keys[i]) * size >> 16)
        places[this] = jnp.minimum(moved, moved - size)  # Below 0 is large.
    return places[0] * np.uint32(columns) + places[1]


def _hash(x: Array) -> Array:
    """16 bits that depend on all of x, the end of MurmurHash3 (Appleby, 2008)."""
    x = (x ^ x >> 16) * np.uint32(0x85EBCA6B)
    return (x ^ x >> 13) * np.uint32(0xC2B2AE35) >> 16

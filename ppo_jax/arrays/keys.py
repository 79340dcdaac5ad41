"""Keys that give the random numbers of JAX's own keys with fewer kernels.

On CPUs JAX lowers its generator, threefry (Salmon et al., `Parallel Random Numbers: As
Easy as 1, 2, 3 <https://doi.org/10.1145/2063384.2063405>`_, 2011), as a loop of many
small kernels: for a handful of numbers in every step of an environment that costs more
than the environment. Here its rounds are written out, and XLA fuses them into one.

Keys are of this kind within a program only. Outside they are JAX's own, which
checkpoints and users know.
"""

import functools
import math
from collections.abc import Hashable

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.extend import random
from jax.typing import ArrayLike

from ppo_jax.arrays.calls import apart
from ppo_jax.types import Array, PyTree

_ROTATIONS = ((13, 15, 26, 6), (17, 29, 16, 24))
_PARITY = np.uint32(0x1BD11BDA)
_DEFAULT = "threefry2x32"


def fused(tree: PyTree) -> PyTree:
    """Returns a tree whose default keys of JAX are replaced by cheaper equal ones.

    >>> key = jax.random.key(3)
    >>> bool((jax.random.bits(fused(key), 9) == jax.random.bits(key, 9)).all())
    True
    """
    if not jax.threefry_partitionable.value:
        return tree
    return _converted(tree, _DEFAULT, _FUSED)


def plain(tree: PyTree) -> PyTree:
    """Returns a tree with JAX's own keys in place of the keys of `fused`."""
    return _converted(tree, _FUSED, _DEFAULT)


def _converted(tree: PyTree, before: Hashable, after: Hashable) -> PyTree:
    def convert(x):
        is_key = jnp.issubdtype(jnp.asarray(x).dtype, jax.dtypes.prng_key)
        if not is_key or jax.random.key_impl(x) != before:
            return x
        return jax.random.wrap_key_data(jax.random.key_data(x), impl=after)

    return jax.tree.map(convert, tree)


def _hash(key: Array, count: Array) -> tuple[Array, Array]:
    """Hashes counters uint32 `[n]` by a key uint32 `[2]`: Threefry-2x32, 20 rounds.

    Written with operators, it would take three times as long to trace.
    """
    parity = key[0] ^ key[1] ^ _PARITY
    parts = [lax.broadcast(part, count.shape) for part in (key[0], key[1], parity)]
    x, y = parts[0], lax.add(count, parts[1])
    for i in range(5):
        for distance in _ROTATIONS[i % 2]:
            x = lax.add(x, y)
            y = lax.bitwise_xor(x, _rotated(y, distance))
        x = lax.add(x, parts[(i + 1) % 3])
        y = lax.add(lax.add(y, parts[(i + 2) % 3]), np.uint32(i + 1))
    return x, y


def _rotated(x: Array, distance: int) -> Array:
    left = lax.shift_left(x, np.uint32(distance))
    return lax.bitwise_or(left, lax.shift_right_logical(x, np.uint32(32 - distance)))


def _words(key: Array, count: Array, place: Array) -> Array:
    """Returns a counter's first word at even places, its second at odd ones, `[n]`."""
    x, y = _hash(key, count)
    return lax.select(place % 2 == 0, x, y)


@functools.partial(jax.jit, static_argnums=1)
def _split(key: Array, shape: tuple[int, ...]) -> Array:
    @apart
    def children(key):
        place = lax.iota(jnp.uint32, 2 * math.prod(shape))
        return _words(key, place >> 1, place).reshape(*shape, 2)

    return children(key)


@apart
def _child(key: Array, data: Array) -> Array:
    return _words(key, lax.broadcast(data, (2,)), lax.iota(jnp.uint32, 2))


def _fold_in(key: Array, data: ArrayLike) -> Array:
    return _child(key, jnp.asarray(data).astype(jnp.uint32))


@functools.partial(jax.jit, static_argnums=1)
def _bits(key: Array, shape: tuple[int, ...]) -> Array:
    @apart
    def bits(key):
        x, y = _hash(key, lax.iota(jnp.uint32, math.prod(shape)))
        return (x ^ y).reshape(shape)

    return bits(key)


def _random_bits(key: Array, bit_width: int, shape: tuple[int, ...]) -> Array:
    if bit_width == 64 or math.prod(shape) >= 2**32:
        return random.threefry_prng_impl.random_bits(key, bit_width, shape)
    return _bits(key, shape).astype(jnp.dtype(f"uint{bit_width}"))


_FUSED = random.define_prng_impl(
    key_shape=(2,),
    seed=random.threefry_prng_impl.seed,
    split=_split,
    random_bits=_random_bits,
    fold_in=_fold_in,
    name="fused_threefry2x32",
    tag="fused",
)

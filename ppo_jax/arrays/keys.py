"""Keys that give the random numbers of JAX's own keys with fewer kernels.

On CPUs JAX lowers its generator as a loop of many small kernels: for a handful of
numbers in every step of an environment that costs more than the environment. Here the
rounds of that loop are written out (`threefry`), and XLA fuses them into one.

Keys are of this kind within a program only. Outside they are JAX's own, which
checkpoints and users know.
"""

import math
from collections.abc import Hashable

import jax
import jax.numpy as jnp
from jax import lax
from jax.extend import random
from jax.typing import ArrayLike

from ppo_jax.arrays import threefry
from ppo_jax.types import Array, PyTree

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


def _split(key: Array, shape: tuple[int, ...]) -> Array:
    return lax.reshape(threefry.words(key, 2 * math.prod(shape)), (*shape, 2))


def _fold_in(key: Array, data: ArrayLike) -> Array:
    return threefry.words(key, 2, jnp.asarray(data).astype(jnp.uint32))


def _bits(key: Array, shape: tuple[int, ...]) -> Array:
    return lax.reshape(threefry.bits(key, math.prod(shape)), shape)


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

"""Trees packed into one array per dtype, or into one of words.

A program that writes or hands on many small arrays compiles and runs a kernel for each;
a loop that changes them copies each of them as well. An update has dozens of metrics,
and a step of the environments has more than a dozen arrays to keep.
"""

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from flax import struct

from ppo_jax.arrays import platforms
from ppo_jax.types import Array, PyTree

SMALL = {"cpu": 16, "default": 4096}
"""Largest leaf whose numbers cost less, all together, than a kernel for it."""
WORD = jnp.dtype("uint32")


def itself(leaf: Array) -> jnp.dtype:
    """Returns the type of a leaf: parts of it can be added up as the leaf can."""
    return leaf.dtype


def word(leaf: Array) -> jnp.dtype:
    """Returns a type for the bits of all leaves of 32 bits a number, and of few flags.

    >>> [str(word(jnp.ones(2, dtype))) for dtype in ("float32", "bool", "uint8")]
    ['uint32', 'uint32', 'uint8']
    """
    few = leaf.dtype == bool and leaf.size <= SMALL["default"]
    return WORD if few or leaf.dtype.itemsize == WORD.itemsize else leaf.dtype


KEPT_AS = {"cpu": itself, "default": word}
"""Types of what a loop hands on or writes: a kernel costs more than a conversion."""


class Place(NamedTuple):
    """The place of a leaf: the index of its part, and the leaf's start there."""

    part: int
    start: int
    shape: tuple[int, ...]
    """Shape of the leaf without the leading axes."""
    dtype: jnp.dtype | None = None
    """Type of the leaf, if it is kept as another; None: that of the part."""


@struct.dataclass
class Packed:
    """A tree of leaves `[B..., ...]`, whose leading axes are the same.

    Functions of leading axes alone can be mapped over it as over the tree.

    >>> packed = pack({"a": jnp.ones((2, 3)), "b": jnp.arange(2)}, leading=1)
    >>> packed["b"].tolist(), [part.shape for part in packed.parts]
    ([0, 1], [(2, 3), (2, 1)])
    >>> jax.tree.map(lambda x: x[0], packed)["a"].tolist()
    [1.0, 1.0, 1.0]
    """

    parts: tuple[Array, ...]
    """Arrays of packed leaves, one per type, `[B..., n]`."""
    alone: tuple[Array, ...]
    """Leaves that are in no part."""
    places: tuple[Place | int, ...] = struct.field(pytree_node=False)
    """Place of each leaf, in `parts`, or an index in `alone`."""
    structure: Any = struct.field(pytree_node=False)

    def unpack(self) -> PyTree:
        """Returns the tree."""
        return self.structure.unflatten(map(self._leaf, self.places))

    def __getitem__(self, name: str) -> Array:
        """Returns a leaf by name, of a tree that is a dictionary of leaves."""
        return self._leaf(self.structure.unflatten(self.places)[name])

    def _leaf(self, place: Place | int) -> Array:
        if isinstance(place, int):
            return self.alone[place]
        index, start, shape, dtype = place
        part = self.parts[index]
        leaf = part[..., start : start + math.prod(shape)]
        leaf = leaf.reshape(*part.shape[:-1], *shape)
        return leaf if dtype is None else _read_as(dtype, leaf)


def unpack(tree: PyTree) -> PyTree:
    """Returns a tree in which everything packed is unpacked."""
    return jax.tree.map(
        lambda x: x.unpack() if isinstance(x, Packed) else x,
        tree,
        is_leaf=lambda x: isinstance(x, Packed),
    )


def pack_like(tree: PyTree, example: PyTree) -> PyTree:
    """Packs the subtrees that have the structure of `example`, and nothing else.

    >>> params = {"a": jnp.ones(2), "b": jnp.ones(3)}
    >>> count, moment = pack_like((jnp.int32(0), params), params)
    >>> count.shape, moment.parts[0].shape
    ((), (5,))
    """
    structure = jax.tree.structure(example)

    def is_like(x):
        return jax.tree.structure(x) == structure

    return jax.tree.map(lambda x: pack(x) if is_like(x) else x, tree, is_leaf=is_like)


def pack_small(tree: PyTree) -> Packed:
    """Packs the leaves that are small for the platform, for a loop to hand on."""
    most = platforms.chosen(**SMALL)
    return pack(tree, most=most, kept_as=platforms.chosen(**KEPT_AS))


def pack_rows(tree: PyTree) -> Packed:
    """Packs leaves `[B, ...]`, for a loop to write."""
    return pack(tree, leading=1, kept_as=platforms.chosen(**KEPT_AS))


def pack(
    tree: PyTree,
    leading: int = 0,
    most: float = math.inf,
    kept_as: Callable[[Array], jnp.dtype] = itself,
) -> Packed:
    """Packs a tree whose leaves have `leading` axes in common.

    Keys stay alone, and so do leaves of more than `most` numbers. Leaves of no numbers
    stay alone too, because XLA cannot always compile an empty slice.

    Args:
        tree: A tree of arrays.
        leading: Number of axes that all leaves have in common.
        most: Numbers of the largest leaf that is packed.
        kept_as: Returns the type that a leaf is kept as; those of a type are together.

    >>> packed = pack({"image": jnp.ones((2, 99)), "time": jnp.ones(2)}, 1, most=16)
    >>> [part.shape for part in packed.parts], [leaf.shape for leaf in packed.alone]
    ([(2, 1)], [(2, 99)])
    """
    leaves, structure = jax.tree.flatten(tree)
    kinds: dict[jnp.dtype, list[Array]] = {}
    alone, places, widths = [], [], {}
    for leaf in map(jnp.asarray, leaves):
        own = leaf.dtype
        if not 0 < leaf.size <= most or jnp.issubdtype(own, jax.dtypes.prng_key):
            places.append(len(alone))
            alone.append(leaf)
            continue
        kind, shape = kept_as(leaf), leaf.shape[leading:]
        part, start = kinds.setdefault(kind, []), widths.get(kind, 0)
        other = None if kind == own else own
        places.append(Place(list(kinds).index(kind), start, shape, other))
        part.append(_read_as(kind, leaf.reshape(*leaf.shape[:leading], -1)))
        widths[kind] = start + math.prod(shape)
    parts = tuple(jnp.concatenate(part, axis=-1) for part in kinds.values())
    return Packed(parts, tuple(alone), tuple(places), structure)


def _read_as(dtype: jnp.dtype, x: Array) -> Array:
    """Returns the bits of an array as those of another type; flags are 0 and 1."""
    if x.dtype == dtype:
        return x
    if bool in (x.dtype, dtype):
        return x.astype(dtype)
    return jax.lax.bitcast_convert_type(x, dtype)

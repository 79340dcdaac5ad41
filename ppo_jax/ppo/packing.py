"""Trees kept together, as one array per dtype.

A program that writes or hands on many small arrays runs a kernel for each, and compiles
one. Metrics of an update are dozens, and what is kept of a step of the environments is
more than a dozen.
"""

import math
from typing import Any

import jax
import jax.numpy as jnp
from flax import struct

from ppo_jax.types import Array, PyTree


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
    """Of each dtype, `[B..., n]`."""
    places: tuple[tuple[int, int, tuple[int, ...]], ...] = struct.field(
        pytree_node=False
    )
    """Of each leaf: its part, where it begins there, and the shape of its last axes."""
    structure: Any = struct.field(pytree_node=False)

    def unpack(self) -> PyTree:
        """The tree."""
        return self.structure.unflatten(map(self._leaf, self.places))

    def __getitem__(self, name: str) -> Array:
        """A leaf of a tree that is a dictionary of leaves."""
        return self._leaf(self.structure.unflatten(self.places)[name])

    def _leaf(self, place: tuple[int, int, tuple[int, ...]]) -> Array:
        index, start, shape = place
        part = self.parts[index]
        leaf = part[..., start : start + math.prod(shape)]
        return leaf.reshape(*part.shape[:-1], *shape)


def unpack(tree: PyTree) -> PyTree:
    """A tree in which nothing is packed any more."""
    return jax.tree.map(
        lambda x: x.unpack() if isinstance(x, Packed) else x,
        tree,
        is_leaf=lambda x: isinstance(x, Packed),
    )


def pack_like(tree: PyTree, example: PyTree) -> PyTree:
    """A tree whose parts that are built as an example are packed, and nothing else.

    >>> params = {"a": jnp.ones(2), "b": jnp.ones(3)}
    >>> count, moment = pack_like((jnp.int32(0), params), params)
    >>> count.shape, moment.parts[0].shape
    ((), (5,))
    """
    structure = jax.tree.structure(example)

    def is_like(x):
        return jax.tree.structure(x) == structure

    return jax.tree.map(lambda x: pack(x) if is_like(x) else x, tree, is_leaf=is_like)


def pack(tree: PyTree, leading: int = 0) -> Packed:
    """A tree whose leaves have `leading` axes in common, and no keys."""
    leaves, structure = jax.tree.flatten(tree)
    kinds: dict[jnp.dtype, list[Array]] = {}
    places, widths = [], {}
    for leaf in map(jnp.asarray, leaves):
        kind, shape = leaf.dtype, leaf.shape[leading:]
        part, start = kinds.setdefault(kind, []), widths.get(kind, 0)
        places.append((list(kinds).index(kind), start, shape))
        part.append(leaf.reshape(*leaf.shape[:leading], -1))
        widths[kind] = start + math.prod(shape)
    parts = tuple(jnp.concatenate(part, axis=-1) for part in kinds.values())
    return Packed(parts, tuple(places), structure)

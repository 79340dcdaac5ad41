"""The arrays of a checkpoint: small leaves of a population are saved together.

Orbax takes a millisecond for an array, however small it is, and a population has dozens
of leaves. So leaves of the same type are saved as one array, unless they are large or
lie in several processes.
"""

import zlib
from collections.abc import Mapping, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from ppo_jax.arrays.tree import by_path
from ppo_jax.types import PyTree

Leaf = jax.Array | np.ndarray
Together = Mapping[str, Sequence[str]]
"""Paths of the leaves that are saved as one array, by type, in the array's order."""
MOST = 2**20
"""Leaves of fewer bytes are saved together with others."""


def planned(tree: PyTree) -> Together:
    """Returns the paths of leaves that are saved together.

    >>> planned({"a": jnp.ones(2), "b": jnp.ones(3), "large": jnp.ones((1024, 1024))})
    {'float32': ['a', 'b']}
    """
    together: dict[str, list[str]] = {}
    for path, leaf in _with_numbers(tree).items():
        if _is_whole(leaf) and leaf.nbytes < MOST:
            together.setdefault(_data(leaf).dtype.name, []).append(path)
    return together


def saved(tree: PyTree, together: Together) -> dict[str, dict[str, Any]]:
    """Returns the arrays to save for a tree; leaves saved together are copied.

    >>> tree = {"a": jnp.ones(2), "b": jnp.zeros((1, 2))}
    >>> saved(tree, {"float32": ["a", "b"]})["together"]["float32"].tolist()
    [1.0, 1.0, 0.0, 0.0]
    """
    parts, apart = _divided(tree, together)
    arrays = {
        kind: np.concatenate([np.ravel(_here(leaf)) for leaf in leaves])
        for kind, leaves in parts.items()
    }
    return {"together": arrays, "apart": {x: _here(leaf) for x, leaf in apart.items()}}


def sums(arrays: PyTree) -> dict[str, int]:
    """Returns checksums (CRC-32) by path, of arrays that are whole in this process.

    >>> sums({"a": np.zeros(2, np.float32), "b": jnp.ones(2)})
    {'a': 1696784233, 'b': 3573961104}
    """
    here = {path: _here(leaf) for path, leaf in by_path(arrays).items()}
    return {
        path: zlib.crc32(np.ascontiguousarray(array).tobytes())
        for path, array in here.items()
        if isinstance(array, np.ndarray)
    }


def require_unchanged(arrays: PyTree, before: Mapping[str, int]) -> None:
    """Checks arrays by the checksums that there are; files have none of their own.

    Raises:
        ValueError: If one has another checksum.
    """
    for path, now in sums(arrays).items():
        if before.get(path, now) != now:
            raise ValueError(f"{path}: its numbers are not those that were saved")


def wanted(template: PyTree, together: Together) -> dict[str, dict[str, Any]]:
    """Returns the arrays to restore for a tree like a template, arranged as `saved`."""
    parts, apart = _divided(template, together)
    arrays = {
        kind: np.empty(sum(leaf.size for leaf in leaves), jnp.dtype(kind))
        for kind, leaves in parts.items()
    }
    return {"together": arrays, "apart": apart}


def restored(
    found: Mapping[str, Mapping[str, Any]], template: PyTree, together: Together
) -> PyTree:
    """Returns the tree that was saved, placed as the leaves of a template are.

    >>> tree = {"a": jnp.ones(2), "b": jnp.zeros((1, 2))}
    >>> together = planned(tree)
    >>> restored(saved(tree, together), tree, together)["b"].tolist()
    [[0.0, 0.0]]
    """
    like = by_path(template)
    leaves = like | dict(found["apart"])
    for kind, paths in together.items():
        ends = np.cumsum([_data(like[path]).size for path in paths])
        parts = np.split(found["together"][kind], ends[:-1])
        for path, part in zip(paths, parts, strict=True):
            leaves[path] = _like(like[path], part)
    return jax.tree.unflatten(jax.tree.structure(template), [leaves[x] for x in like])


def _divided(
    tree: PyTree, together: Together
) -> tuple[dict[str, list[Leaf]], dict[str, Leaf]]:
    """Returns numbers of leaves saved together, by type, and other leaves by path."""
    apart = _with_numbers(tree)
    parts = {
        kind: [_data(apart.pop(path)) for path in paths]
        for kind, paths in together.items()
    }
    return parts, apart


def _with_numbers(tree: PyTree) -> dict[str, Any]:
    """Returns leaves by path, without empty ones, which Orbax does not save."""
    return {path: leaf for path, leaf in by_path(tree).items() if leaf.size}


def _like(leaf: Leaf, numbers: np.ndarray) -> Leaf:
    """Returns numbers as a leaf like the given one, in the same place."""
    data = _data(leaf)
    shaped = numbers.reshape(data.shape)
    if isinstance(data, np.ndarray):
        return shaped
    placed = jax.make_array_from_callback(data.shape, data.sharding, shaped.__getitem__)
    if not _is_key(leaf):
        return placed
    return jax.random.wrap_key_data(placed, impl=jax.random.key_impl(leaf))


def _data(leaf: Leaf) -> Leaf:
    """Returns the numbers of a leaf, which may consist of random keys."""
    return jax.random.key_data(leaf) if _is_key(leaf) else leaf


def _is_key(leaf: Leaf) -> bool:
    return jnp.issubdtype(leaf.dtype, jax.dtypes.prng_key)


def _is_whole(leaf: Leaf) -> bool:
    """Returns whether all of a leaf is in this process."""
    return not isinstance(leaf, jax.Array) or leaf.is_fully_addressable


def _here(leaf: Leaf) -> Leaf:
    """Returns a leaf as a NumPy array if it is whole in this process and not of keys.

    Orbax saves NumPy arrays in half the time. Of an array on several devices it would
    save a piece from each of them, and compile a program for every shape.
    """
    if not _is_whole(leaf) or _is_key(leaf):
        return leaf
    if isinstance(leaf, jax.Array) and leaf.is_fully_replicated:
        leaf = leaf.addressable_data(0)
    return np.asarray(leaf)

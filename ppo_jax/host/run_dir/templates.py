"""Trees that checkpoints are read into, and their differences from saved ones."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from ppo_jax.arrays.tree import by_path
from ppo_jax.errors import kind
from ppo_jax.transforms.statistics import is_statistics
from ppo_jax.types import PyTree


def blank(shapes: PyTree) -> PyTree:
    """Returns a tree of these shapes, with zeros for its numbers.

    They are arrays of NumPy, but for shapes that have a place: these stay shapes, but
    for keys and empty ones, so that a device has what is restored there but once.
    """

    def zeros(shape):
        is_key = jnp.issubdtype(shape.dtype, jax.dtypes.prng_key)
        if shape.sharding is not None and shape.size and not is_key:
            return shape
        data = jax.eval_shape(jax.random.key_data, shape) if is_key else shape
        numbers: Any = np.zeros(data.shape, data.dtype)
        if shape.sharding is not None:
            place, part = shape.sharding, numbers.__getitem__
            numbers = jax.make_array_from_callback(data.shape, place, part)
        return jax.random.wrap_key_data(numbers) if is_key else numbers

    return jax.tree.map(zeros, shapes)


def leaves(tree: PyTree) -> dict[str, str]:
    """Returns the type and shape of every leaf, by path: `float32[4, 64]`, say."""
    return {path: kind(leaf) for path, leaf in by_path(tree).items()}


def arranged(tree: PyTree, like: PyTree) -> PyTree:
    """Returns the leaves of a tree in another tree whose leaves have the same paths.

    >>> arranged({"a": {"b": 1, "c": 2}}, {"a": {"b": 0, "c": 0, "d": None}})
    {'a': {'b': 1, 'c': 2, 'd': None}}
    """
    leaves = by_path(tree)
    structure = jax.tree.structure(like)
    return jax.tree.unflatten(structure, [leaves[path] for path in by_path(like)])


def anew(tree: PyTree, fresh: PyTree, kinds: set[str]) -> PyTree:
    """Returns a tree whose statistics of some classes are those of a fresh tree."""

    def chosen(old, new):
        return new if type(old).__name__ in kinds else old

    return jax.tree.map(chosen, tree, fresh, is_leaf=is_statistics)


def differences(saved: dict[str, str], wanted: dict[str, str]) -> list[str]:
    """Returns the leaves that differ, and how.

    >>> differences({"x": "float32[2]", "y": "int32[]"}, {"x": "float32[3]"})
    ['x: float32[2] -> float32[3]', 'y: int32[] -> absent']
    """
    return [
        f"{path}: {saved.get(path, 'absent')} -> {wanted.get(path, 'absent')}"
        for path in sorted(saved.keys() | wanted.keys())
        if saved.get(path) != wanted.get(path)
    ]

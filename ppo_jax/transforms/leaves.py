"""Measures of all leaves of a tree together; a tree without numbers counts as a 0."""

import jax
import jax.numpy as jnp

from ppo_jax.types import Array, PyTree


def flat(tree: PyTree) -> Array:
    """Returns all numbers of a tree, `[n]`.

    >>> flat({"kernel": jnp.array([[0.0, 3.0]]), "bias": jnp.array(4.0)}).tolist()
    [4.0, 0.0, 3.0]
    """
    return jnp.concatenate([leaf.reshape(-1) for leaf in _leaves(tree)])


def extrema(tree: PyTree) -> tuple[Array, Array]:
    """Returns the least and the greatest number of a tree, `[]` each.

    >>> [float(x) for x in extrema([jnp.array([1.0, -2.0]), jnp.array(5.0)])]
    [-2.0, 5.0]
    """
    leaves = _leaves(tree)
    low, high = (
        jnp.stack([reduce(leaf) for leaf in leaves]) for reduce in (jnp.min, jnp.max)
    )
    return low.min(), high.max()


def norm(tree: PyTree) -> Array:
    """Returns the L2 norm of a tree, `[]`.

    >>> float(norm({"a": jnp.array([3.0]), "b": jnp.array(4.0)}))
    5.0
    """
    squares = (jnp.sum(x**2) for x in jax.tree.leaves(tree))
    return jnp.sqrt(sum(squares, jnp.zeros((), jnp.float32)))


def _leaves(tree: PyTree) -> list[Array]:
    """Returns the leaves that hold a number; there is always one."""
    full = [leaf for leaf in jax.tree.leaves(tree) if leaf.size]
    return full or [jnp.zeros(1, jnp.float32)]

"""States of an optimiser that describe the task, not a way through it.

A state is statistics if its class has a `VERSION`, a whole number that grows whenever
what they mean changes. Every copy of a member takes them over, and where another
version wrote them they begin anew.
"""

from typing import Any

import jax

from ppo_jax.types import PyTree


def is_statistics(node: Any) -> bool:
    """Whether a state is statistics."""
    return hasattr(type(node), "VERSION")


def versions(tree: PyTree) -> dict[str, int]:
    """The version of each kind of statistics in a tree, by its name."""
    nodes = jax.tree.leaves(tree, is_leaf=is_statistics)
    return {type(x).__name__: type(x).VERSION for x in nodes if is_statistics(x)}

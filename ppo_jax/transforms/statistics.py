"""Optimiser states that describe the task rather than the path of the parameters.

A state is statistics if its class has a `VERSION`, a whole number that grows whenever
the meaning of the statistics changes. Every copy of a member takes its statistics over.
Statistics that another version wrote start again.
"""

from typing import Any

import jax

from ppo_jax.types import PyTree


def is_statistics(node: Any) -> bool:
    """Returns whether a state is statistics."""
    return hasattr(type(node), "VERSION")


def versions(tree: PyTree) -> dict[str, int]:
    """Returns the version of each kind of statistics in a tree, by class name."""
    nodes = jax.tree.leaves(tree, is_leaf=is_statistics)
    return {type(x).__name__: type(x).VERSION for x in nodes if is_statistics(x)}

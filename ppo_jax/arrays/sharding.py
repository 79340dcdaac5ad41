"""How several devices share the work of one agent.

Each acts in its own share of the environments, and learns from its own share of every
minibatch. What they saw and found is put together, all else each does for itself, and
so all of them come to the same learner.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax.flatten_util import ravel_pytree

from ppo_jax.arrays.packing import pack
from ppo_jax.types import Array, PyTree

ENVS = "environments"
"""The axis of devices that share what belongs to one agent."""


class Crew(NamedTuple):
    """Devices that take equal shares of something; a single one needs none of this."""

    size: int

    def own(self, tree: PyTree, axis: int = 0) -> PyTree:
        """This device's share of what all of them know, along an axis of each leaf."""
        if self.size == 1:
            return tree

        def cut(x):
            length = x.shape[axis] // self.size
            start = jax.lax.axis_index(ENVS) * length
            return jax.lax.dynamic_slice_in_dim(x, start, length, axis)

        return jax.tree.map(cut, tree)

    def whole(self, tree: PyTree, axis: int = 0) -> PyTree:
        """The shares of all, in order, along an axis of each leaf.

        They meet once for each dtype: up to that axis, leaves have the same axes.
        """
        if self.size == 1:
            return tree
        said = pack(tree, leading=axis + 1)
        return jax.lax.all_gather(said, ENVS, axis=axis, tiled=True).unpack()

    def combined(self, sums: PyTree, peaks: dict[str, Array]) -> tuple[PyTree, PyTree]:
        """Sums and maxima of what each has, whole.

        They meet once, because that takes longer than what there is to say: a maximum
        is taken of a sum, in which each of them has a place of its own.
        """
        if self.size == 1:
            return sums, peaks
        here = jnp.arange(self.size) == jax.lax.axis_index(ENVS)
        placed = {name: jnp.where(here, peak, 0.0) for name, peak in peaks.items()}
        said, restore = ravel_pytree((sums, placed))
        sums, placed = restore(jax.lax.psum(said, ENVS))
        return sums, {name: peak.max() for name, peak in placed.items()}


def crew(count: int) -> Crew:
    """The devices of an agent, if they can take equal shares of so many things."""
    devices = jax.sharding.get_abstract_mesh().shape.get(ENVS, 1)
    return Crew(devices if count % devices == 0 else 1)

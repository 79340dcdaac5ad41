"""Sharing the work of one agent between several devices.

Each device acts in its own share of the environments, and learns from its own share of
every minibatch. Their rollouts, and their sums over a minibatch, are put together. Each
device does everything else for itself, and so all of them get the same learner.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax.flatten_util import ravel_pytree

from ppo_jax.arrays.packing import pack
from ppo_jax.types import Array, PyTree

ENVS = "environments"
"""Name of the mesh axis whose devices share the work of one agent."""


class Crew(NamedTuple):
    """Devices that take equal shares; with a single one, methods change nothing."""

    size: int

    def own(self, tree: PyTree, axis: int = 0) -> PyTree:
        """Returns this device's share of a whole tree, along an axis of each leaf."""
        if self.size == 1:
            return tree

        def cut(x):
            length = x.shape[axis] // self.size
            start = jax.lax.axis_index(ENVS) * length
            return jax.lax.dynamic_slice_in_dim(x, start, length, axis)

        return jax.tree.map(cut, tree)

    def whole(self, tree: PyTree, axis: int = 0) -> PyTree:
        """Puts the shares of all devices together, along an axis of each leaf.

        Devices meet once per dtype, so leaves must have the same axes up to that one.
        """
        if self.size == 1:
            return tree
        packed = pack(tree, leading=axis + 1)
        return jax.lax.all_gather(packed, ENVS, axis=axis, tiled=True).unpack()

    def combined(self, sums: PyTree, peaks: dict[str, Array]) -> tuple[PyTree, PyTree]:
        """Returns the sums and the maxima over all devices.

        Devices meet only once, because a meeting takes longer than the data. The peaks
        therefore go into the same sum, in which each device has a place of its own, and
        the maximum is taken afterwards.
        """
        if self.size == 1:
            return sums, peaks
        here = jnp.arange(self.size) == jax.lax.axis_index(ENVS)
        placed = {name: jnp.where(here, peak, 0.0) for name, peak in peaks.items()}
        flat, restore = ravel_pytree((sums, placed))
        sums, placed = restore(jax.lax.psum(flat, ENVS))
        return sums, {name: peak.max() for name, peak in placed.items()}


def crew(count: int) -> Crew:
    """Returns the devices of an agent, or a crew of 1 if they do not divide `count`."""
    devices = jax.sharding.get_abstract_mesh().shape.get(ENVS, 1)
    return Crew(devices if count % devices == 0 else 1)

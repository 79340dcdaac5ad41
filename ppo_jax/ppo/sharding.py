"""How the work of one agent is shared by several devices.

The layout says where environments lie (`host.mesh`), and the compiler follows. What was
drawn from all of them in random order lies nowhere in particular until it is said.
"""

import jax
from jax.sharding import PartitionSpec as Axes

from ppo_jax.types import PyTree

ENVS = "environments"
"""The axis of devices that share what belongs to one agent."""


def shared(tree: PyTree, axis: int = 0) -> PyTree:
    """The same leaves, of which every device is to hold a share, along an axis.

    It is a matter of speed alone. Nothing happens without such devices, or if they
    cannot take equal shares.
    """
    devices = jax.sharding.get_abstract_mesh().shape.get(ENVS, 1)

    def share(x):
        if devices == 1 or x.shape[axis] % devices:
            return x
        places = [Axes.UNCONSTRAINED] * x.ndim
        places[axis] = ENVS
        return jax.lax.with_sharding_constraint(x, Axes(*places))

    return jax.tree.map(share, tree)

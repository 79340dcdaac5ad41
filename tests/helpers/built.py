"""Small networks, as training builds them."""

import jax
import jax.numpy as jnp
import numpy as np

from ppo_jax import critics, networks
from ppo_jax.envs.env import Discrete

SCALAR = critics.Scalar()
TWO_ACTIONS = Discrete(2)
OBS = jax.ShapeDtypeStruct((3,), jnp.float32)


def build(space=TWO_ACTIONS, num_critics=2, critic=SCALAR, obs=OBS, **fields):
    torso = fields.pop("torso", networks.Mlp(hidden=(8,)))
    architecture = networks.ActorCritic(torso=torso, **fields)
    return networks.build(architecture, space, obs, critic, num_critics)


def drawn(network, seed=0):
    """Draws parameters without compiling a program for them."""
    rng = np.random.default_rng(seed)
    shapes = jax.eval_shape(network.init, jax.random.key(0))
    return jax.tree.map(lambda x: np.float32(rng.normal(size=x.shape)), shapes)

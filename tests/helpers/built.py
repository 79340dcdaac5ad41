"""Small networks, as training builds them."""

import jax
import jax.numpy as jnp

from ppo_jax import critics, networks
from ppo_jax.envs.env import Discrete

SCALAR = critics.Scalar()
TWO_ACTIONS = Discrete(2)
OBS = jax.ShapeDtypeStruct((3,), jnp.float32)


def build(space=TWO_ACTIONS, num_critics=2, critic=SCALAR, obs=OBS, **fields):
    torso = fields.pop("torso", networks.Mlp(hidden=(8,)))
    architecture = networks.ActorCritic(torso=torso, **fields)
    return networks.build(architecture, space, obs, critic, num_critics)

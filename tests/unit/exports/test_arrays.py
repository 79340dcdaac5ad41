"""Which networks the runner knows, and what it is told of them."""

import flax.linen as nn
import jax
import numpy as np
import pytest
from agents import Sights, agent

from ppo_jax import Policy, networks
from ppo_jax.component import component
from ppo_jax.envs.env import Box
from ppo_jax.errors import UserError
from ppo_jax.exports import arrays

BOX = Box((-1.0, -np.inf), (1.0, np.inf))
SMALL = networks.Mlp(hidden=(4,))


@component
class Wide(networks.Mlp):
    """It says the same, but who knows?"""


@component
class Own(networks.Torso):
    def __call__(self, obs):
        return nn.Dense(4)(obs)


@component
class Fading(networks.Gru):
    pass


@component
class Narrow(networks.GaussianHead):
    pass


def policy(*parts, **fields):
    network = networks.ActorCritic(*parts)
    return Policy.of(agent(Sights(space=BOX), network=network, **fields))


@pytest.mark.parametrize(
    ("parts", "said"),
    [
        ((Wide(hidden=(4,)),), "no torso Wide, only Mlp, Cnn"),
        ((Own(),), "no torso Own, only Mlp, Cnn"),
        ((SMALL, Fading(size=4)), "no memory Fading, only Lstm, Gru, MinGru"),
        ((SMALL, None, Narrow()), "no head Narrow, only GaussianHead, SquashedHead"),
    ],
)
def test_a_part_of_ones_own_is_refused(parts, said):
    with pytest.raises(UserError) as error:
        arrays.network(policy(*parts))
    assert said in str(error.value)
    assert str(error.value).endswith("; the format stablehlo takes any")


def test_arrays_have_the_names_of_parameters():
    learned = policy(SMALL, networks.Lstm(size=3), obs_clip=5.0)
    found = arrays.arrays(learned)
    params = learned.params["trunk"]["memory"]["layer_0"]
    recurrent = found["params.trunk.memory.layer_0.recurrent"]
    np.testing.assert_array_equal(recurrent, params["recurrent"])
    np.testing.assert_array_equal(found["low"], [-1, -np.inf])
    spread = np.exp(np.asarray(learned.params["log_std"], np.float64))
    np.testing.assert_allclose(found["scale"], spread, rtol=1e-6)
    var = np.asarray(learned.obs_moments.var, np.float64)
    np.testing.assert_allclose(found["deviation.0"], np.sqrt(var), rtol=1e-6)
    own = {"mean.0", "deviation.0", "low", "high", "scale"}
    assert len(found) == len(own) + len(jax.tree.leaves(learned.params))
    assert own <= found.keys()

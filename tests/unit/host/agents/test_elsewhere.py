"""Agents of a population in environments that none of them was trained in."""

import dataclasses
from typing import Any

import numpy as np
import pytest

from ppo_jax import PBT, Config, Uniform, networks
from ppo_jax.component import component
from ppo_jax.envs import Box, Discrete, MultiDiscrete
from ppo_jax.envs.probes import TimeLimitChain
from ppo_jax.errors import UserError
from ppo_jax.host.agents import elsewhere
from ppo_jax.host.agents.trained import Trained
from ppo_jax.host.loop import training

SEARCHED = {
    "env.reward": Uniform(1.0, 2.0),
    "optimizer.learning_rate": Uniform(1e-4, 1e-3),
}
CHAIN = TimeLimitChain(limit=5)
CONFIG = Config(
    env=CHAIN,
    num_envs=2,
    num_steps=4,
    num_minibatches=1,
    total_timesteps=800,
    network=networks.ActorCritic(torso=networks.Mlp(hidden=(4,))),
    pbt=PBT(SEARCHED, size=4, interval=5),
)


@component
class Acting(TimeLimitChain):
    actions: Any = None

    @property
    def action_space(self):
        return self.actions


@component
class ThreeActions(TimeLimitChain):
    action_space = Discrete(3)


@pytest.fixture(scope="module")
def agents():
    return Trained(CONFIG, training.start(CONFIG), 0)


def test_members_share_the_numbers_of_another_environment(agents):
    """Their own rewards differ; there, three rewards of 4 are the same for all."""
    rewards = np.asarray(agents.learner.config.env.reward)
    assert len(set(rewards)) == 4
    other = TimeLimitChain(limit=3, reward=4.0)
    np.testing.assert_array_equal(agents.evaluate(2, env=other)["mean"], 4 * [12])
    own = agents.evaluate(2)["mean"]
    np.testing.assert_allclose(own, 5 * rewards, rtol=1e-6)


@pytest.mark.parametrize(
    ("env", "message"),
    [
        ("CartPole-v1", r"env: .* of training, float32\[1\], got float32\[4\]"),
        ("CartPol-v1", ".*no environment of gymnax is called 'CartPol-v1'"),
        (3, "env: expected an Env or an id, got 3"),
    ],
)
def test_what_they_cannot_play_is_refused(agents, env, message):
    with pytest.raises(UserError, match=f"^{message}"):
        agents.evaluate(env=env)


def test_other_actions_are_refused(agents):
    with pytest.raises(UserError, match=r"the actions of training, .*2.*, got .*3"):
        agents.evaluate(env=ThreeActions())


@pytest.mark.parametrize(
    ("trained", "here"),
    [
        (MultiDiscrete((2, 3)), MultiDiscrete((3, 2))),
        (Box((-1.0,), (1.0,)), Box((-2.0,), (2.0,))),
        (Box((-1.0,), (1.0,)), Discrete(1)),
    ],
    ids=str,
)
def test_actions_with_as_many_parameters_are_others_all_the_same(trained, here):
    env, other = Acting(actions=trained), Acting(actions=here)
    config = dataclasses.replace(CONFIG, env=env)
    with pytest.raises(UserError, match="the actions of training"):
        elsewhere.members(config, None, other)

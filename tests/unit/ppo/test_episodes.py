"""Playing whole episodes, in environments whose returns are known."""

import chex
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from ppo_jax import networks
from ppo_jax.component import component
from ppo_jax.config import Config
from ppo_jax.envs.env import Discrete, Env, outcome
from ppo_jax.ppo import population
from ppo_jax.ppo.episodes import run_episodes, summarize

LONGEST = 6


@component
class Short(Env):
    """Two actions, and six steps at most."""

    @property
    def action_space(self):
        return Discrete(2)

    @property
    def max_episode_steps(self):
        return LONGEST


@component
class Countdown(Short):
    """Shows how many steps are left, and pays 1 for each; at most six are played.

    With every step a coin is thrown, and paid as well.
    """

    coin: float = 0.0
    shortest: int = 1

    def reset(self, key):
        left = jax.random.randint(key, (), self.shortest, self.shortest + LONGEST)
        return left[None].astype(jnp.float32), left

    def transition(self, key, state, action):
        left = state - 1
        paid = 1.0 + self.coin * jax.random.bernoulli(key)
        obs = left[None].astype(jnp.float32)
        return outcome(obs, reward=paid, terminated=left == 0), left


@component
class Blink(Short):
    """Shows luck, but `gap` after the second step; what is done when is in the return.

    An action of 1 pays 1, then 2, then 4, and so on.
    """

    gap: float = 0.0

    def reset(self, key):
        return jax.random.normal(key, (2,)), jnp.int32(0)

    def transition(self, key, state, action):
        luck = jax.random.normal(key, (2,))
        obs = jnp.where(state == 1, self.gap, luck)
        over = state + 1 == LONGEST
        return outcome(obs, action * 2.0**state, terminated=over), state + 1


@component
class Once(Countdown):
    """Has one episode, and no start of another."""

    def restart(self, key, state):
        raise AssertionError("nobody plays a second episode")


@component
class Stepped(Countdown):
    """Has a step of its own, as wrappers do: starts are a part of it."""

    def step(self, key, state, action):
        return super().step(key, state, action)


played = jax.jit(run_episodes, static_argnums=2)


def play(env, count=64, **architecture):
    torso = networks.Mlp(hidden=())
    network = networks.ActorCritic(torso=torso, **architecture)
    config = Config(env, num_steps=8, network=network)
    members = population.init(config, jax.random.split(jax.random.key(0), 1))
    learner = jax.tree.map(lambda x: x[0], members.runs.learner)
    return jax.device_get(played(learner, jax.random.key(1), count))


@pytest.mark.parametrize("env", [Countdown(), Stepped()], ids=["apart", "in steps"])
def test_only_the_first_episode_of_each_environment_counts(env):
    """Environments go on by themselves while longer episodes do."""
    returns, ended = play(env)
    assert ended.all()
    assert set(returns) == {1, 2, 3, 4, 5, 6}


def test_a_return_that_is_no_number_is_in_every_statistic():
    """Without it the worst would be better than it is."""
    returns = np.arange(100.0, 228.0)
    assert summarize(returns)["cvar_5"] == 103.0  # Of the 7 worst of 128.
    returns[:64] = np.nan
    said = summarize(returns)
    assert said.pop("episodes") == 128
    assert np.isnan([*said.values()]).all()


@pytest.mark.parametrize("count", [1, 2, 21, 128])
def test_statistics_of_members_are_those_of_each_alone(count):
    """To the last bit; of one whose return is no number, nobody else is told."""
    returns = np.random.default_rng(count).normal(0.0, 9.0, (6, count))
    returns[2, 0] = np.nan
    said = summarize(returns)
    assert said.pop("episodes") == count
    for member, alone in enumerate(map(summarize, returns)):
        assert alone.pop("episodes") == count
        assert all(isinstance(value, float) for value in alone.values())
        each = {name: values[member] for name, values in said.items()}
        np.testing.assert_array_equal([*each.values()], [*alone.values()])
        assert each.keys() == alone.keys()
    quarter = np.percentile(returns[0], 25)
    assert said["q25"][0] == pytest.approx(quarter, rel=1e-12)
    tail = np.sort(returns[1])[: {21: 2, 128: 7}.get(count, 1)]
    assert said["cvar_5"][1] == pytest.approx(tail.mean(), rel=1e-12)


def test_no_start_is_computed_that_nobody_plays():
    """And the luck of all steps is what it would be."""
    returns, _ = play(Once(coin=1.0))
    expected, _ = play(Stepped(coin=1.0))
    chex.assert_trees_all_equal(returns, expected)
    assert np.unique(returns).size > LONGEST


def test_an_episode_is_played_to_the_limit_and_no_further():
    """Seven steps and more are left of some: six of them are played."""
    returns, ended = play(Countdown(shortest=6))
    chex.assert_trees_all_equal(returns, LONGEST)
    assert ended.any() and not ended.all()


def test_every_step_has_luck_of_its_own():
    """Six fair coins: how many are heads is binomial."""
    returns, _ = play(Countdown(coin=1.0, shortest=6), count=512)
    heads = returns - LONGEST
    expected = 512 * np.array([1, 6, 15, 20, 15, 6, 1]) / 64
    seen = np.bincount(heads.astype(int), minlength=7)
    assert (np.abs(seen - expected) < 5 * np.sqrt(expected)).all()


def test_what_is_not_finite_is_seen_as_zeros():
    """As in a rollout: the memory is not lost by it."""
    broken, _ = play(Blink(gap=jnp.nan), memory=networks.Gru(size=4))
    zeros, ended = play(Blink(gap=0.0), memory=networks.Gru(size=4))
    chex.assert_trees_all_equal(broken, zeros)
    later = zeros.astype(int) // 4 % 16  # What the last four actions paid.
    assert ended.all() and np.unique(later).size > 2

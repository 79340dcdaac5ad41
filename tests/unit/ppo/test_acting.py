"""What an agent sees, says and does in a step, and how that is what it learns from."""

import dataclasses
import functools

import built
import chex
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from brief import MLP, experiment
from tabular import drawn

from ppo_jax import networks
from ppo_jax.component import component
from ppo_jax.critics import pessimistic
from ppo_jax.envs.env import NEVER
from ppo_jax.envs.probes import Accumulator, MaskedBandit, OneStep, Target
from ppo_jax.envs.wrappers import TimeLimit, Wrapper
from ppo_jax.networks.distributions import Categorical
from ppo_jax.ppo import acting, rollout
from ppo_jax.ppo.acting import Agent

NAN, INF = float("nan"), float("inf")
GRU = dataclasses.replace(MLP, memory=networks.Gru(size=4))
live = jax.jit(rollout.unroll)


def deed(run, choice):
    """A step of all environments of a run."""
    config, count = run.learner.config, run.actor.reset.size
    agent = Agent(run.learner, config.build(), choice)
    keys = acting.Keys(*jax.random.split(jax.random.key(2), (2, count)))
    return jax.jit(
        lambda actor: acting.act(agent, config.env.step, actor, actor.carry, keys)
    )(run.actor)


def test_actions_are_as_likely_as_they_are():
    """Three of four are the second; the most likely one is always the same."""
    policy = Categorical(np.log(np.tile(np.float32([0.25, 0.75]), (10_000, 1))))
    drawn = acting.sampled(policy, jax.random.key(0))
    assert abs(np.mean(drawn) - 0.75) < 5 * np.sqrt(0.25 * 0.75 / 10_000)
    chex.assert_trees_all_equal(acting.most_likely(policy, jax.random.key(0)), 1)


@pytest.mark.parametrize("choice", [acting.sampled, acting.most_likely])
def test_only_legal_actions_are_chosen(choice):
    run = drawn(experiment(MaskedBandit(), num_envs=48))
    done = jax.device_get(deed(run, choice).decision)
    assert done.mask is not None and not done.mask.all()
    assert done.mask[np.arange(48), done.action].all()


def test_environments_begin_apart_and_memories_empty():
    run = drawn(experiment(Target(), num_envs=8, network=GRU, chunk_length=4))
    assert not any(leaf.weak_type for leaf in jax.tree.leaves(run.actor))
    actor = jax.device_get(run.actor)
    assert np.unique(actor.obs).size == 8 and actor.reset.all()
    chex.assert_trees_all_equal(actor.obs, actor.env_state)
    for nothing in (actor.carry, actor.episode_return, actor.episode_length):
        assert not any(leaf.any() for leaf in jax.tree.leaves(nothing))


def test_the_memory_is_that_of_a_sequence():
    """Step by step as all at once, and anew after a reset."""
    network = experiment(Target(), network=GRU, chunk_length=4).build()
    params = built.drawn(network)

    def said(out):
        return out.policy, pessimistic(out.value), out.carry

    @jax.jit
    def evaluate(*args):
        return said(acting.evaluate(network, *args))

    @jax.jit
    def apply(*args):
        return said(network.apply(*args))

    obs = np.float32(np.random.default_rng(1).normal(size=(5, 3, 1)))
    reset = np.zeros((5, 3), bool)
    reset[0] = reset[2, 1] = True
    carry = network.initial_carry(3)
    *whole, last = jax.device_get(apply(params, carry, obs, reset))
    for t in range(5):
        *step, carry = evaluate(params, carry, obs[t], reset[t])
        expected = jax.tree.map(lambda x, t=t: x[t], whole)
        chex.assert_trees_all_close(step, expected, rtol=1e-5, atol=1e-6)
    chex.assert_trees_all_close(carry, last, rtol=1e-5, atol=1e-6)


@functools.cache
def seeing(obs_clip):
    return drawn(experiment(Target(size=2), num_envs=3, obs_clip=obs_clip)).learner


@pytest.mark.parametrize("obs_clip", [None, 10.0])
@pytest.mark.parametrize("bad", [NAN, INF, -INF])
def test_zeros_are_seen_where_there_is_no_number(obs_clip, bad, variant):
    """Of the whole observation, and whatever it is divided by; others as ever."""
    learner = seeing(obs_clip)
    obs = np.float32([[0.5, -1.0], [bad, 2.0], [3.0, 0.25]])

    @variant
    def view(obs):
        return acting.view(learner, obs, jnp.zeros(3, bool))

    seen, finite = jax.device_get(view(obs))
    assert finite.tolist() == [True, False, True]
    assert not seen[1].any()
    sound = np.array([0, 2])
    chex.assert_trees_all_close(seen[sound], obs[sound], rtol=1e-6)


def test_normalised_observations_are_clipped():
    """PROP-3.4: to ± `obs_clip`."""
    run = drawn(experiment(Accumulator(), obs_clip=0.75))
    _, steps, _ = live(run.learner, run.actor, run.key)
    chex.assert_trees_all_close(steps.obs, 0.75, rtol=1e-7)


def test_actions_are_scored_as_sampled_and_acted_as_clipped():
    """PROP-1.1: the density is that of the sample, whatever the bounds make of it."""
    env = TimeLimit(env=Target(), limit=NEVER)
    run = drawn(experiment(env, num_envs=48))
    _, steps, _ = live(run.learner, run.actor, run.key)
    network = run.learner.config.build()
    say = jax.jit(network.apply)
    policy = say(run.learner.params, (), steps.obs, steps.reset).policy
    raw, loc, scale = np.asarray((steps.action, policy.loc, policy.scale), float)
    assert np.abs(raw).max() > 2
    density = -0.5 * ((raw - loc) / scale) ** 2 - 0.5 * np.log(2 * np.pi * scale**2)
    chex.assert_trees_all_close(steps.log_prob, density[..., 0], rtol=0, atol=1e-5)
    paid = -np.sum((np.clip(raw, -2, 2) - np.asarray(steps.obs)) ** 2, axis=-1)
    chex.assert_trees_all_close(steps.reward, paid, rtol=0, atol=1e-5)


@functools.cache
def counting():
    return drawn(experiment(Accumulator(), num_envs=2))


@component
class Misshapen(Wrapper):
    """Says one thing in a shape or type of its own."""

    field: str = "terminated"
    how: str = "column"

    def step(self, key, state, action):
        timestep, state = self.env.step(key, state, action)
        x = getattr(timestep, self.field)
        x = {"column": x[None], "wide": jnp.stack([x, x]), "float": x * NAN}[self.how]
        return timestep._replace(**{self.field: x}), state


@pytest.mark.parametrize(
    ("field", "how"),
    [
        ("terminated", "column"),
        ("truncated", "column"),
        ("reward", "column"),
        ("terminated", "wide"),
        ("truncated", "float"),
    ],
)
def test_flags_of_a_wrong_shape_are_refused(field, how):
    """PROP-1.5, R-A22, X4, R-A24, X12.

    `[B, 1]`, `[B, 2]` or NaN instead of one flag each.
    """
    run, env = counting(), Misshapen(Accumulator(), field=field, how=how)
    config = dataclasses.replace(run.learner.config, env=env)
    learner = run.learner.replace(config=config)
    with pytest.raises(ValueError, match=rf"Timestep\.{field}: expected shape \(2,\)"):
        jax.eval_shape(rollout.unroll, learner, run.actor, run.key)


@component
class Stateless(OneStep):
    def draw(self, key):
        return ()

    def pay(self, key, state, action):
        return action.astype(jnp.float32)


def test_an_environment_may_have_no_state():
    run = drawn(experiment(Stateless()))
    _, steps, _ = live(run.learner, run.actor, run.key)
    chex.assert_trees_all_equal(steps.reward, steps.action)
    assert steps.terminated.all()

"""Agents trained where the answer is known, one for each kind of space and network."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from ppo_jax import networks, optimizers, terms
from ppo_jax.component import component
from ppo_jax.config import Config
from ppo_jax.envs.probes import (
    Costs,
    GridCue,
    HiddenSteps,
    IdenticalRewards,
    MaskedBandit,
    NestedObservation,
    RecallCue,
    Target,
    TimeLimitChain,
    TwoDigits,
)
from ppo_jax.envs.probes.bandits import OneStep
from ppo_jax.envs.wrappers import FrameStack, MaskObservation
from ppo_jax.host.metrics.catalogue import summarize
from ppo_jax.ppo import episodes, population, rollout
from ppo_jax.schedules import Progress

LINEAR = networks.ActorCritic(torso=networks.Mlp(hidden=()))
MLP = networks.ActorCritic(torso=networks.Mlp(hidden=(64,)))
# The product of two bits is even, a tanh without biases is odd.
RELU = networks.ActorCritic(
    torso=networks.Mlp(hidden=(64,), activation="relu"),
)
ADAM = optimizers.Adam(learning_rate=1e-2)
LONGEST = 300
"""Updates of a training, at most; shorter ones are the same program."""


def experiment(env, **changes):
    fields = {
        "env": env,
        "num_envs": 32,
        "num_steps": 8,
        "network": MLP,
        "terms": (terms.Surrogate(), terms.Value(), terms.Entropy(coef=0.0)),
        "optimizer": ADAM,
    }
    return Config(**fields | changes)


def start(config):
    return population.init(config, jax.random.split(jax.random.key(0), 1))


def train(config, updates=100):
    """The run afterwards, and its metrics `[updates]`."""
    progress = Progress.of(np.arange(LONGEST), LONGEST)
    members, metrics = population.advance(start(config), progress, jnp.int32(updates))
    return jax.tree.map(lambda x: x[0], members.runs), {
        name: np.asarray(values)[:updates, 0] for name, values in metrics.items()
    }


def play(run):
    """Mean return of deterministic episodes."""
    returns, ended = jax.jit(
        lambda learner: episodes.run_episodes(learner, jax.random.key(1), 256)
    )(run.learner)
    assert ended.all()
    return float(returns.mean())


def acting(memory=None, torso=MLP.torso, head=MLP.head):
    return networks.ActorCritic(torso=torso, memory=memory, head=head)


SOLVED = {
    "dict": (NestedObservation(), RELU, 0.95),
    "multi-discrete": (TwoDigits(), MLP, 0.95),
    "gaussian": (Target(size=2), MLP, -0.03),
    "tanh": (Target(size=2), acting(head=networks.TanhHead()), -0.03),
    "sigmoid": (Target(size=2), acting(head=networks.SigmoidHead()), -0.03),
    "masked": (MaskedBandit(), MLP, 0.45),
    "grid": (GridCue(), acting(torso=networks.Cnn(channels=(4,), hidden=(32,))), 0.95),
    "lstm": (RecallCue(delay=2), acting(networks.Lstm(size=16)), 0.95),
    "gru of two layers": (
        MaskObservation(RecallCue(delay=2), (0, 1)),
        acting(networks.Gru(size=16, layers=2)),
        0.95,
    ),
    "frames": (
        FrameStack(MaskObservation(RecallCue(delay=2), (0, 1)), 4),
        MLP,
        0.95,
    ),
    "gates of the inputs": (RecallCue(delay=2), acting(networks.MinGru(size=16)), 0.95),
}


@pytest.mark.slow
@pytest.mark.parametrize(("env", "network", "least"), SOLVED.values(), ids=SOLVED)
def test_what_can_be_solved_is_solved(env, network, least):
    run, metrics = train(experiment(env, network=network), updates=300)
    assert metrics["error/skipped_steps"].sum() == 0
    assert play(run) >= least


@component
class HiddenCoin(OneStep):
    """A coin pays 1 or −1, whatever is done; its side is shown, beside a dull sight."""

    def draw(self, key):
        return 2.0 * jax.random.bernoulli(key) - 1.0

    def observe(self, state):
        return {"coin": jnp.reshape(state, 1), "sight": jnp.ones(1)}

    def pay(self, key, state, action):
        return state


def test_critics_know_what_the_actor_does_not_see():
    """To them each side is worth what it pays; without it both would be worth 0."""
    reads = {"actor_obs": ("sight",), "critic_obs": ("coin",)}
    network = dataclasses.replace(LINEAR, **reads)
    run, metrics = train(experiment(HiddenCoin(), network=network))
    assert metrics["train/explained_variance"][-1] > 0.99
    obs = {"coin": jnp.array([[[1.0], [-1.0]]]), "sight": jnp.ones((1, 2, 1))}
    network, reset = run.learner.config.build(), jnp.zeros((1, 2), bool)
    out = network.apply(run.learner.params, (), obs, reset)
    np.testing.assert_allclose(out.value.mean()[0, :, 0], [1.0, -1.0], atol=0.01)
    np.testing.assert_array_equal(*out.policy.logits[0])


@pytest.mark.slow
def test_without_a_memory_a_cue_is_guessed():
    """The same budget that solves it with one leaves the return at chance."""
    run, _ = train(experiment(MaskObservation(RecallCue(delay=2), (0, 1))), 300)
    assert 0.35 < play(run) < 0.65


def test_no_forbidden_action_is_ever_taken():
    """PROP-21.6: through training, at every step, and where none was better."""
    live = jax.jit(rollout.unroll)
    for updates in (0, 10, 100):
        run, _ = train(experiment(MaskedBandit(), network=LINEAR), updates)
        _, steps, _ = live(run.learner, run.actor, run.key)
        chosen = np.take_along_axis(steps.action_mask, steps.action[..., None], -1)
        assert chosen.all() and steps.reward.max() <= 1
        assert not steps.action_mask.all()


def hidden_steps(**changes):
    return experiment(HiddenSteps(**changes), network=LINEAR, obs_clip=10.0)


def test_rewards_of_hidden_steps_are_not_learned_from():
    """PROP-15.4: the arm that pays where it counts, whatever it pays elsewhere."""
    run, _ = train(hidden_steps())
    _, steps, _ = jax.jit(rollout.unroll)(run.learner, run.actor, run.key)
    assert steps.action.mean() > 0.95


def test_steps_without_weight_teach_nothing():
    """PROP-15.4: garbage in rows of weight 0 changes no parameter."""
    quiet, loud = (
        train(hidden_steps(garbage=garbage), updates=2)[0] for garbage in (100.0, -1e3)
    )
    jax.tree.map(
        lambda a, b: np.testing.assert_allclose(a, b, atol=1e-6),
        *(run.learner.params for run in (quiet, loud)),
    )


@component
class Ending(TimeLimitChain):
    """The chain of a build that takes a time limit for an end."""

    def transition(self, key, state, action):
        timestep, after = super().transition(key, state, action)
        return timestep._replace(terminated=timestep.truncated), after


def if_it_ended(gamma, gae_lambda, limit):
    """The value that confirms itself where a time limit is an end, and is not seen.

    The mean of the advantages Aₜ = δₜ + γλ Aₜ₊₁ is 0, with δ = 1 − (1 − γ) V at every
    step but the last, where it is 1 − V.
    """
    weights = np.cumsum((gamma * gae_lambda) ** np.arange(limit))
    return weights.sum() / ((1 - gamma) * weights[:-1].sum() + weights[-1])


@pytest.mark.slow
@pytest.mark.parametrize(
    ("env", "worth"), [(TimeLimitChain, 10.0), (Ending, if_it_ended(0.9, 0.95, 5))]
)
def test_a_chain_is_worth_what_follows_its_time_limit(env, worth):
    """R-D8, R-D14: V = ± 1 / (1 − γ) through truncations; nothing leaks past them."""
    chain = env(limit=5, negative=0.5)
    run, _ = train(experiment(chain, num_steps=10, gamma=0.9), updates=300)
    network = run.learner.config.build()
    obs, reset = jnp.array([[[1.0], [-1.0]]]), jnp.zeros((1, 2), bool)
    value = network.apply(run.learner.params, (), obs, reset).value.mean()[0, :, 0]
    np.testing.assert_allclose(value, [worth, -worth], rtol=1e-3)


def test_identical_rewards_move_no_policy():
    """PROP-4.1, R-D2, R-D19.

    A hundred updates leave the actor as it was, to the bit.
    """
    config = experiment(IdenticalRewards(reward=3.0), network=LINEAR)
    before = jax.tree.map(lambda x: x[0], start(config).runs.learner.params)
    run, metrics = train(config)
    jax.tree.map(
        np.testing.assert_array_equal, run.learner.params["actor"], before["actor"]
    )
    assert metrics["train/advantages_zero_std"].all()
    assert metrics["train/value_loss"][-1] < 1e-3 * metrics["train/value_loss"][0]


def test_costs_that_are_not_finite_are_left_out():
    """R-D11: ∞, 1, NaN, 3 have mean and median 2; of none but ∞ both are missing."""
    config = experiment(Costs(), network=LINEAR)
    run, metrics = train(config, updates=2)
    assert (metrics["costs/count"] == 32 * 8 / 2).all()
    said = summarize(metrics)
    assert said["rollout/cost_mean"] == said["rollout/cost_median"] == 2
    assert said["rollout/cost_invalid"] == 2 * 32 * 8 / 2
    assert said["rollout/cost_available"] == 1
    assert said["rollout/ep_rew_mean"] == 4
    assert metrics["error/quarantined_steps"].sum() == 0
    assert all(np.isfinite(leaf).all() for leaf in jax.tree.leaves(run.learner.params))
    none = Costs(table=4 * (float("inf"),))
    _, metrics = train(dataclasses.replace(config, env=none), updates=2)
    said = summarize(metrics)
    assert np.isnan([said["rollout/cost_mean"], said["rollout/cost_median"]]).all()
    assert said["rollout/cost_available"] == 0

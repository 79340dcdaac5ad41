"""What is not finite harms nobody else, and is counted."""

import dataclasses
import functools

import chex
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from ppo_jax import networks, optimizers
from ppo_jax.config import Config
from ppo_jax.envs.env import NEVER
from ppo_jax.envs.faults import Faulty
from ppo_jax.envs.probes import Accumulator, TimeLimitChain
from ppo_jax.ppo import population
from ppo_jax.schedules import Progress

NAN = float("nan")
UPDATES = 4
"""Of a phase, at most."""


def experiment(env, **changes):
    settings = {
        "env": env,
        "num_envs": 4,
        "num_steps": 8,
        "num_epochs": 2,
        "num_minibatches": 2,
        "network": networks.ActorCritic(torso=networks.Mlp(hidden=())),
        "total_timesteps": 3200,
        "obs_clip": 10.0,
    }
    return Config(**settings | changes)


def breakable(**amounts):
    """A chain in which nothing breaks, unless it is struck."""
    return Faulty(TimeLimitChain(limit=5), rate=0.0, steps=NEVER, **amounts)


def members(config, size=3):
    return population.init(config, jax.random.split(jax.random.key(0), size))


def advance(runs, updates=2):
    progress = Progress.at(np.linspace(0.0, 0.5, UPDATES))
    runs, metrics = population.advance(runs, progress, jnp.int32(updates))
    return runs, {name: x[:updates] for name, x in jax.device_get(metrics).items()}


def break_one(pop, member, env, step):
    """Makes one environment of one member fail from a step of its own on."""
    start = pop.runs.actor.env_state.start
    return struck(pop, start.at[member, env].set(step))


def struck(pop, start):
    """The environments `[P, B]` fail from steps of their own on."""
    state = pop.runs.actor.env_state._replace(start=start)
    actor = dataclasses.replace(pop.runs.actor, env_state=state)
    return dataclasses.replace(pop, runs=dataclasses.replace(pop.runs, actor=actor))


@pytest.mark.parametrize(
    ("what", "amount"),
    [
        ("reward", NAN),
        ("obs", NAN),
        ("state", NAN),
        ("weight", NAN),
        ("weight", np.inf),
        ("weight", -2.0),
    ],
)
def test_one_broken_environment_harms_no_other_member(what, amount):
    """R-A20: the others are bit-identical, its own member goes on learning."""
    config = experiment(breakable(**{what: amount}))
    healthy, _ = advance(members(config))
    ill, metrics = advance(break_one(members(config), member=1, env=2, step=3))
    before, healthy, ill = jax.device_get(
        [pop.runs.learner for pop in (members(config), healthy, ill)]
    )
    others = (jax.tree.map(lambda x: x[[0, 2]], end) for end in (healthy, ill))
    chex.assert_trees_all_equal(*others)
    mine = jax.tree.map(lambda x: x[1], ill)
    chex.assert_tree_all_finite((mine.params, mine.opt_state, mine.obs_moments))
    weights = (jax.tree.leaves(end.params)[0][1] for end in (before, ill))
    assert not np.array_equal(*weights)
    quarantined = metrics["error/quarantined_steps"].sum(axis=0)
    assert quarantined[1] > 0 and quarantined[0] == quarantined[2] == 0
    assert metrics["train/n_minibatches_done"].min() == 4


def test_members_without_a_valid_step_fail():
    """R-A20: each by itself; the streak ends with the first update that has one."""
    pop = members(experiment(breakable(reward=NAN)))
    start = pop.runs.actor.env_state.start.at[1].set(0)
    start = start.at[2, 1:].set(0)
    pop = struck(pop, start)
    pop, metrics = advance(pop, 2)
    streaks = metrics["error/failure_streak"]
    np.testing.assert_array_equal(streaks, [[0, 1, 0], [0, 2, 0]])
    _, metrics = advance(struck(pop, jnp.full_like(start, NEVER)), 1)
    np.testing.assert_array_equal(metrics["error/failure_streak"], [[0, 0, 0]])


MEMORIES = {
    "lstm": {"memory": networks.Lstm(size=8)},
    "gru": {"memory": networks.Gru(size=8, layers=2), "shared": True},
}
# Episodes of 5 steps in rollouts of 12 with chunks of 4; the third begins with step 24.
PLACES = {
    "middle of a chunk": 26,
    "end of a chunk": 31,
    "before the end of an episode": 28,
    "end of an episode": 29,
    "start of an episode": 30,
    "end of the rollout": 35,
}


@functools.cache
def remembering(memory, what, step=NEVER):
    """Four updates of one step; an environment of the third of five members breaks.

    A single step sees the parameters that acted, so its log-ratios are those of a
    replay. Learning is fast: what is remembered soon matters for what is done.
    """
    config = experiment(
        Faulty(env=Accumulator(limit=5), rate=0.0, **{what: NAN}),
        num_steps=12,
        chunk_length=4,
        num_epochs=1,
        num_minibatches=1,
        network=networks.ActorCritic(torso=networks.Mlp(hidden=()), **MEMORIES[memory]),
        optimizer=optimizers.Adam(learning_rate=0.05),
    )
    pop, metrics = advance(break_one(members(config, 5), 2, env=1, step=step), 4)
    runs = pop.runs.replace(key=jax.random.key_data(pop.runs.key))
    return jax.device_get((runs, {k: v.T for k, v in metrics.items()}))


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("what", ["reward", "obs", "state"])
@pytest.mark.parametrize("memory", MEMORIES)
def test_a_memory_begins_anew_after_a_fault(memory, what, place):
    """R-A20, PROP-1.1: acting and learning agree; nobody else notices."""
    runs, metrics = remembering(memory, what, PLACES[place])
    quarantined = metrics["error/quarantined_steps"]
    assert quarantined[2, 2] > 0 and quarantined.sum() == quarantined[2, 2]
    np.testing.assert_allclose(metrics["train/log_ratio_max_abs"], 0.0, atol=1e-6)
    jax.tree.map(
        lambda ill, healthy: np.testing.assert_array_equal(
            np.delete(ill, 2, axis=0), np.delete(healthy, 2, axis=0)
        ),
        *((runs, metrics), remembering(memory, what)),
    )
    mine = jax.tree.map(lambda x: x[2], runs.learner)
    chex.assert_tree_all_finite((mine.params, mine.opt_state, mine.obs_moments))
    assert (metrics["train/n_minibatches_done"] == 1).all()


def test_a_non_finite_policy_makes_every_step_a_no_op():
    """PROP-5.7, PROP-16.5: nothing moves, the counters say why."""
    pop = members(experiment(breakable()))
    learner = pop.runs.learner
    params = jax.tree.map(lambda x: np.full_like(x, NAN), learner.params)
    state = jax.tree.map(np.array, learner.opt_state)
    learner = dataclasses.replace(learner, params=params)
    pop = dataclasses.replace(pop, runs=dataclasses.replace(pop.runs, learner=learner))
    after, metrics = advance(pop, updates=3)
    jax.tree.map(np.testing.assert_array_equal, after.runs.learner.opt_state, state)
    assert metrics["error/skipped_steps"].sum(axis=0).tolist() == [12] * 3
    assert metrics["error/failure_streak"].T.tolist() == [[1, 2, 3]] * 3

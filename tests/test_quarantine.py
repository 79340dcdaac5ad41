"""What is not finite harms nobody else, and is counted."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from ppo_jax import networks, tree
from ppo_jax.config import Config
from ppo_jax.envs.api import NEVER
from ppo_jax.envs.faults import Faulty
from ppo_jax.envs.probes import HiddenSteps, TimeLimitChain
from ppo_jax.pbt import population
from ppo_jax.schedules import Progress

NAN = float("nan")


def experiment(env, **changes):
    settings = {
        "env": env,
        "num_envs": 4,
        "num_steps": 8,
        "num_epochs": 2,
        "num_minibatches": 2,
        "network": networks.ActorCritic(torso=networks.Mlp(hidden=(8,))),
        "total_timesteps": 3200,
        "obs_clip": 10.0,
    }
    return Config(**settings | changes)


def members(config, size=1):
    return population.init(config, jax.random.split(jax.random.key(0), size))


def advance(runs, updates=2):
    progress = Progress.at(np.linspace(0.0, 0.5, updates))
    return population.advance(runs, progress, jnp.int32(updates))


def break_one(pop, member, env, step):
    """Makes one environment of one member fail from a step of its own on."""
    runs = pop.runs
    state = runs.actor.env_state
    state = state._replace(start=state.start.at[member, env].set(step))
    actor = dataclasses.replace(runs.actor, env_state=state)
    return dataclasses.replace(pop, runs=dataclasses.replace(runs, actor=actor))


@pytest.mark.parametrize("what", ["reward", "obs", "state"])
def test_one_broken_environment_harms_no_other_member(what):
    """R-A20: the others are bit-identical, its own member goes on learning."""
    env = Faulty(env=TimeLimitChain(limit=5), rate=0.0, steps=NEVER, **{what: NAN})
    config = experiment(env)
    before = np.asarray(jax.tree.leaves(members(config).runs.learner.params)[0])
    healthy, _ = advance(members(config, 3))
    ill, metrics = advance(break_one(members(config, 3), member=1, env=2, step=3))
    for member in (0, 2):
        jax.tree.map(
            np.testing.assert_array_equal,
            tree.take(healthy.runs.learner, jnp.int32(member)),
            tree.take(ill.runs.learner, jnp.int32(member)),
        )
    mine = tree.take(ill.runs.learner, jnp.int32(1))
    assert tree.all_finite((mine.params, mine.opt_state, mine.obs_moments))
    assert not np.array_equal(jax.tree.leaves(mine.params)[0], before[0])
    quarantined = np.asarray(metrics["error/quarantined_steps"]).sum(axis=0)
    assert quarantined[1] > 0 and quarantined[0] == quarantined[2] == 0
    assert metrics["train/n_minibatches_done"].min() == 4


def test_a_non_finite_policy_makes_every_step_a_no_op():
    """PROP-5.7, PROP-16.5: nothing moves, the counters say why."""
    pop = members(experiment(TimeLimitChain(limit=5)))
    learner = pop.runs.learner
    params = jax.tree.map(lambda x: x.at[...].set(jnp.nan), learner.params)
    state = jax.tree.map(jnp.array, learner.opt_state)
    learner = dataclasses.replace(learner, params=params)
    pop = dataclasses.replace(pop, runs=dataclasses.replace(pop.runs, learner=learner))
    after, metrics = advance(pop, updates=3)
    jax.tree.map(np.testing.assert_array_equal, after.runs.learner.opt_state, state)
    assert metrics["error/skipped_steps"].sum() == 12
    assert metrics["error/failure_streak"][:, 0].tolist() == [1, 2, 3]


def test_steps_without_weight_teach_nothing():
    """PROP-15.4: garbage in rows of weight 0 changes no parameter."""
    quiet, loud = (HiddenSteps(), HiddenSteps(garbage=-1e3))
    after = [advance(members(experiment(env)))[0] for env in (quiet, loud)]
    jax.tree.map(
        lambda a, b: np.testing.assert_allclose(a, b, atol=1e-6),
        *[pop.runs.learner.params for pop in after],
    )

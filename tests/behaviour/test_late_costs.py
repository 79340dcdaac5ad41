"""Agents whose actions cost something later, which they are to spend little of."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from ppo_jax import networks, optimizers, terms
from ppo_jax.component import component
from ppo_jax.config import Config
from ppo_jax.envs.env import NEVER, Discrete, Env, outcome
from ppo_jax.envs.probes import OneStep
from ppo_jax.ppo import population
from ppo_jax.schedules import Progress

UPDATES, LIMIT, MOST = 120, 0.3, 20.0


@component
class Credit(Env):
    """Buys for 1, which is paid five steps later; no step shows what is owed.

    Known answer: who has to spend at most a share of 1 buys in that share of all steps.
    The cost of a step says nothing of the action of that step.
    """

    action_space = Discrete(2)
    min_steps_to_truncation = NEVER

    def reset(self, key):
        return jnp.ones(1), jnp.zeros(5)

    def transition(self, key, state, action):
        owed = jnp.concatenate([action[None].astype(jnp.float32), state[:-1]])
        return outcome(jnp.ones(1), reward=action, cost=state[-1]), owed


LONGEST = 20


@component
class Lottery(Env):
    """Each step costs 0 or 1 by a coin, whatever is done; action 1 ends the episode.

    Known answer: no policy changes the mean cost of a step, so costs favour none.
    """

    action_space = Discrete(2)
    min_steps_to_truncation = LONGEST

    def reset(self, key):
        return jnp.ones(1), jnp.zeros((), jnp.int32)

    def transition(self, key, state, action):
        coin = jax.random.bernoulli(key).astype(jnp.float32)
        ends, late = action == 1, state + 1 >= LONGEST
        step = outcome(
            jnp.ones(1), reward=1.0, cost=coin, terminated=ends, truncated=late
        )
        return step, state + 1


def lived(env, objective, count, updates, **fields):
    """Metrics of agents without hidden layers, `[updates, agents]`."""
    config = Config(
        env=env,
        network=networks.ActorCritic(torso=networks.Mlp(hidden=())),
        terms=(terms.Surrogate(), terms.Value(), *objective),
        **fields,
    )
    members = population.init(config, jax.random.split(jax.random.key(0), count))
    progress = Progress.at(np.zeros(updates))
    _, metrics = population.advance(members, progress, jnp.int32(updates))
    return {name: np.asarray(x) for name, x in metrics.items()}


@pytest.fixture(scope="module")
def spent():
    """What four agents spent and how it was weighed, `[updates, agents]`."""
    limit = terms.CVaRConstraint(
        1.0, terms.Costs(), limit=-LIMIT, learning_rate=1.0, max_dual=MOST
    )
    return lived(
        Credit(),
        (terms.Entropy(0.05), limit),
        count=4,
        updates=UPDATES,
        num_envs=16,
        num_steps=32,
        num_epochs=2,
        num_minibatches=2,
        optimizer=optimizers.Adam(learning_rate=1e-2),
    )


def test_an_action_is_blamed_for_what_it_costs_later(spent):
    """The multiplier swings around what holds the limit, far below its maximum."""
    cost, dual = -spent["train/cvar_empirical"], spent["train/cvar_lambda"]
    late = slice(UPDATES // 3, None)
    assert (abs(cost[late].mean(axis=0) - LIMIT) < 0.15).all()
    assert dual[late].mean() > 0 and dual.max() < MOST


def test_no_episode_is_ended_to_save_what_every_step_costs():
    """Agents learn to stay, as they are paid for it, however much costs weigh."""
    metrics = lived(
        Lottery(),
        (terms.CVaR(1.0, terms.Costs(), coef=4.0),),
        count=3,
        updates=60,
        num_envs=16,
        num_steps=32,
        num_minibatches=2,
        optimizer=optimizers.Adam(learning_rate=1e-2),
    )
    ended = metrics["episodes/count"]
    assert (16 * 32 / ended[:3] < LONGEST / 2).all()
    assert (16 * 32 / ended[-10:].mean(axis=0) > 0.9 * LONGEST).all()


@component
class Free(OneStep):
    """Both actions pay the same, so that advantages never vary; the second costs 1."""

    def pay(self, key, state, action):
        return jnp.ones(())

    def transition(self, key, state, action):
        step, state = super().transition(key, state, action)
        return step._replace(cost=action.astype(jnp.float32)), state


def test_costs_are_limited_where_rewards_never_vary():
    """PROP-13.10, PROP-13.12: they are in units of their own there, of which λ is."""
    limit = terms.CVaRConstraint(
        1.0, terms.Costs(), limit=-0.1, learning_rate=0.1, max_dual=MOST
    )
    metrics = lived(
        Free(),
        (limit,),
        count=2,
        updates=60,
        num_envs=8,
        num_steps=16,
        num_minibatches=1,
        optimizer=optimizers.Adam(learning_rate=3e-2),
    )
    assert (metrics["train/advantages_zero_std"] == 1).all()
    cost, dual = metrics["train/cvar_empirical"], metrics["train/cvar_lambda"]
    np.testing.assert_allclose(dual[1], 0.1 * (-0.1 - cost[0]), rtol=1e-6)
    assert (-cost[:3] > 0.3).all() and (-cost[-20:].mean(axis=0) < 0.2).all()

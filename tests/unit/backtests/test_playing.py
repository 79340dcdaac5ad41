"""Agents on all bars of a span, next to a policy that acts bar by bar."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from traders import cautious, loud, moved, tiny

from ppo_jax import Policy, critics, networks
from ppo_jax.backtests import playing
from ppo_jax.backtests.folds import Span
from ppo_jax.component import component, paths
from ppo_jax.critics import ValueDist
from ppo_jax.envs.trading import Trading
from ppo_jax.ppo import population

SPANS = [Span(20, 60), Span(100, 130)]


@pytest.fixture(scope="module")
def config():
    """With a memory, so that what was seen before matters."""
    memory = networks.Gru(size=4)
    network = networks.ActorCritic(networks.Mlp(hidden=(8,)), memory, shared=True)
    numbers = playing.numbers_of(Span(10, 90)) | {"env.cost": 20.0}
    return paths.replace(tiny(network=network), numbers)


@pytest.fixture(scope="module")
def learners(config):
    """New ones say next to nothing, so these say it a thousand times louder."""
    keys = jax.random.split(jax.random.key(0), 2)
    return loud(jax.device_get(population.init(config, keys).runs.learner))


@pytest.fixture(scope="module")
def played(config, learners):
    return playing.play(playing.through(config, learners, SPANS), 40)


act = jax.jit(Policy.act)
start = jax.jit(lambda env: env.reset(jax.random.key(9)))
move = jax.jit(lambda env, *done: env.transition(jax.random.key(7), *done))


def by_hand(config, learner, span):
    """Growth, turnover, what is asked for and what is held, bar by bar."""
    policy = Policy.of(learner)
    first, last = float(span.first), float(span.last + 1)
    env = dataclasses.replace(config.env, window=None, first=first, last=last)
    state, (obs, account) = policy.init(1), start(env)
    rows, over = [], False
    while not over:
        action, state = act(policy, state, obs[None])
        step, account = move(env, account, action[0])
        obs, over = step.obs, bool(step.truncated)
        asked = env.target(action[0])
        rows.append((step.reward, account.turnover, asked, account.positions))
    return rows


def test_what_is_forbidden_is_not_done():
    """By agents that would buy all there is."""
    config = paths.replace(tiny(env=cautious()), playing.numbers_of(SPANS[0]))
    learners = population.init(config, jax.random.split(jax.random.key(0), 1))
    learners = loud(jax.device_get(learners.runs.learner))
    played = playing.play(playing.through(config, learners, [Span(20, 40)]), 20)
    assert played.positions.max() <= 0 and played.positions.min() < -0.2


@component
class Hedged(Trading):
    """What is asked for is multiplied by a matrix before it is done."""

    def transition(self, key, state, action):
        return super().transition(key, state, jnp.eye(len(action)) @ action)


def test_accounts_multiply_with_all_digits(config, learners):
    """Also on a platform where agents do not."""
    exact = []
    for kind in (Trading, Hedged):
        own = dataclasses.replace(config, env=kind(**vars(config.env)))
        members = playing.through(own, learners, SPANS)
        program = str(jax.make_jaxpr(playing.play, static_argnums=1)(members, 40))
        exact.append(program.count("Precision.HIGHEST, Precision.HIGHEST"))
    assert exact[1] == exact[0] + 1


@pytest.mark.parametrize("member", [0, 1])
def test_as_a_policy_that_acts_bar_by_bar(config, learners, played, member):
    learner = jax.tree.map(lambda x: x[member], learners)
    rows = by_hand(config, learner, SPANS[member])
    assert len(rows) == SPANS[member].bars
    growth, turnover, asked, held = (np.array(x) for x in zip(*rows, strict=True))
    here = slice(len(rows))
    track = played.track
    np.testing.assert_allclose(track.growth[member, here], growth, atol=1e-6)
    np.testing.assert_allclose(track.turnover[member, here], turnover, atol=1e-5)
    filled, (first, last) = played.positions[member, here], SPANS[member]
    np.testing.assert_allclose(filled, asked, rtol=0.004)  # Costs are 20 bp of trades.
    bars = slice(first + 1, last + 1)
    drifted = moved(filled, config.env.prices.bars, bars)
    np.testing.assert_allclose(drifted, held, atol=1e-5)
    exposure = np.abs(held).sum(axis=1)
    np.testing.assert_allclose(track.exposure[member, here], exposure, atol=1e-5)
    assert np.abs(held).max() > 0.1
    assert np.abs(held / asked - 1).max() > 0.01


def test_nothing_is_left_after_the_end_of_a_span(played):
    for leaf in jax.tree.leaves(played):
        assert not leaf[1, 30:].any()


def test_quantiles_are_of_the_law_whatever_its_order():
    """Of the first critic, whose mean is less; 5 % to 95 %."""
    middles = (np.arange(8) + 0.5) / 8
    exact = np.random.default_rng(0).permutation(3 * middles - 1)
    outputs = jnp.array(np.float32([[exact, exact + 9]]))
    found = playing.quantiles(ValueDist(outputs, critics.Quantile(8)))
    uniform = 3 * np.array(playing.LEVELS) - 1
    np.testing.assert_allclose(found, uniform, rtol=1e-5, atol=1e-6)
    logits = jnp.log(jnp.array([[[0.1, 0.2, 0.3, 0.4]]]))
    found = playing.quantiles(ValueDist(logits, critics.Categorical(4, 1.0, 4.0)))
    assert found.tolist() == [1, 2, 3, 4, 4]
    scalar = ValueDist(jnp.zeros((1, 2, 1)), critics.Scalar())
    assert np.isnan(playing.quantiles(scalar)).all()

"""Prices after a bar change nothing up to it, from a file to actions and rewards.

An agent is trained before the bar, with statistics of observations, and acts on all
bars of the file. Other prices after the bar are drawn at random.
"""

import dataclasses

import chex
import jax
import numpy as np
import pytest
from brief import experiment
from price_files import GOOD, text
from tabular import drawn
from traders import PAST, Shifted

from ppo_jax import Policy, networks, optimizers, terms
from ppo_jax.envs import trading
from ppo_jax.envs.trading import PriceFile, Trading
from ppo_jax.ppo import learner
from ppo_jax.schedules import Progress

BAR = 60
"""Nothing after its close is known; it is in the line BAR + 2 of a file."""


def otherwise(seed):
    """The good file with other lines after the bar; there may be fewer of them."""
    rng, lines = np.random.default_rng(seed), GOOD.splitlines()
    known, later = lines[: BAR + 2], lines[BAR + 2 :]
    for i in range(len(later)):
        day, *_ = later[i].split(",")
        low, begin, end, high = np.sort(rng.uniform(60, 100, 4))
        if rng.random() < 0.5:
            begin, end = end, begin
        prices = ",".join(f"{x:.3f}" for x in (begin, high, low, end))
        later[i] = f"{day},{prices},{rng.integers(2) * 500}"
    return text(known + later[: rng.integers(5, len(later))])


def journey(path, features):
    """What was learned before the bar, was decided and earned up to it, and came later.

    What is decided is what is seen, done and owned by bar; later, what is seen and paid
    in a few bars.
    """
    prices = PriceFile(str(path), (trading.repairs.accept_jumps,))
    env = Trading(prices, window=6, features=features, last=BAR + 1)
    config = experiment(
        env,
        obs_clip=5.0,
        network=networks.ActorCritic(networks.Mlp(hidden=())),
        terms=(terms.Surrogate(), terms.Value()),
        optimizer=optimizers.Sgd(max_grad_norm=None),
    )

    @jax.jit
    def taught(run):
        after, _ = learner.iteration(run, Progress.at(0.0))
        return after.learner

    pupil = taught(drawn(config))
    policy = Policy.of(pupil)
    whole = dataclasses.replace(env, window=None, first=6, last=None)
    steps = len(prices.bars.times) - 7

    @jax.jit
    def play(policy):
        obs, account = whole.reset(jax.random.key(0))

        def step(carry, _):
            obs, account, state = carry
            action, state = policy.act(state, obs[None])
            timestep, after = whole.transition(jax.random.key(0), account, action[0])
            record = (account.bar, obs, action[0], account.equity, timestep.reward)
            return (timestep.obs, after, state), record

        return jax.lax.scan(step, (obs, account, policy.init(1)), None, steps)[1]

    bar, *decided, reward = jax.device_get(play(policy))
    known = bar <= BAR
    learned = jax.device_get((pupil.params, pupil.obs_moments))
    earned, later = reward[bar < BAR], (decided[0][~known][:5], reward[bar >= BAR][:5])
    return learned, [x[known] for x in decided], earned, later


@pytest.fixture
def journeys(tmp_path):
    """Of a file, and of others that differ from it after the bar."""

    def travel(features, seeds):
        for number, content in enumerate([GOOD, *map(otherwise, seeds)]):
            path = tmp_path / f"{number}.csv"
            path.write_text(content)
            yield journey(path, features)

    return travel


def require_equal(journeys):
    first, *others = journeys
    for other in others:
        chex.assert_trees_all_equal(first[:3], other[:3])
        for ours, theirs in zip(first[3], other[3], strict=True):
            assert not np.array_equal(ours, theirs)
    moments = first[0][1]
    assert np.ptp(jax.tree.leaves(moments)[0]) > 0 and np.ptp(first[1][1]) > 0


def test_prices_after_a_bar_change_nothing_up_to_it(journeys):
    require_equal(journeys(PAST, seeds=(1,)))


@pytest.mark.slow
def test_whatever_comes_after_a_bar_changes_nothing_up_to_it(journeys):
    require_equal(journeys(PAST, seeds=range(2, 10)))


def test_a_feature_that_is_shifted_into_the_future_is_found(journeys, monkeypatch):
    """Trading itself refuses it; without that, what is learned and done differs."""
    with pytest.raises(ValueError, match=r"Shifted: feature \d of 0 at bar"):
        list(journeys(Shifted(**dataclasses.asdict(PAST)), seeds=(1,)))
    place = "ppo_jax.envs.trading.trading.require_causal"
    monkeypatch.setattr(place, lambda features, bars: features(bars))
    with pytest.raises(AssertionError):
        require_equal(journeys(Shifted(**dataclasses.asdict(PAST)), seeds=(1,)))

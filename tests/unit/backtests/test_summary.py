"""What is said of tracks: against numbers made with a known answer."""

import math

import numpy as np
import pytest
from scipy import stats
from traders import planned, tiny

from ppo_jax.backtests import measures, summary
from ppo_jax.backtests.playing import LEVELS
from ppo_jax.backtests.results import Account, Agents, Results
from ppo_jax.envs.trading import RandomWalk

SEEDS, FOLDS, BARS = 3, 2, 400


class Weekly(RandomWalk):
    """A bar each week."""

    def load(self):
        bars = super().load()
        weeks = 7 * np.arange(len(bars.times)) * np.timedelta64(1, "D")
        return bars._replace(times=bars.times[0] + weeks)


def account(name, returns, cost=10.0, turnover=0.01):
    return Account(
        name,
        cost,
        {},
        returns,
        np.full_like(returns, turnover),
        np.full_like(returns, 0.5),
    )


@pytest.fixture(scope="module")
def results():
    """Agents that know nothing, and a market that rises."""
    random = np.random.default_rng(0)
    returns = 0.01 * random.standard_normal((SEEDS, FOLDS * BARS))
    market = account("buy & hold", 0.02 + 0 * returns[:1] + 0.01 * returns[1:2])
    ends = np.zeros((SEEDS, FOLDS))
    agents = Agents(
        account("as it is", returns),
        account("elsewhere", -returns),
        *(ends, ends, ends, ends),
        np.zeros((SEEDS, FOLDS, BARS, len(LEVELS))),
        0.8,
    )
    other = market._replace(cost=1.0, returns=market.returns - 1.0)
    plan = planned(tiny())
    return Results(plan, [agents], [other, market])


def test_figures_are_of_each_track_with_their_median(results):
    said = summary.of(results.agents[0].account, 252)
    ratios = measures.sharpe(results.agents[0].account.returns)
    figure = said.figures["Sharpe"]
    np.testing.assert_allclose(figure.each, ratios)
    assert figure.median == np.median(ratios)
    assert figure.interval[0] < min(ratios) < max(ratios) < figure.interval[1]
    assert said.figures["turnover"].each == pytest.approx([2.52] * SEEDS)
    assert said.figures["hit rate"].interval is None
    assert math.isnan(summary.Figure([math.nan], None).median)


def test_a_year_has_as_many_bars_as_there_are_in_one(results):
    """A week each; of days there are 252."""
    weekly = results._replace(plan=planned(tiny(Weekly(300, 2))))
    ours, theirs = (summary.as_json(each) for each in (results, weekly))
    assert (ours["year"], theirs["year"]) == (252, pytest.approx(365.25 / 7))
    share = math.sqrt(theirs["year"] / 252)
    for name, power in (("Sharpe", 1), ("volatility", 1), ("turnover", 2)):
        daily, rarer = (x["agents"][0]["figures"][name]["each"] for x in (ours, theirs))
        np.testing.assert_allclose(rarer, share**power * np.array(daily))
    gaps = (np.array(each["agents"][0]["over_market"]) for each in (theirs, ours))
    np.testing.assert_allclose(next(gaps), share * next(gaps))


def test_luck_counts_every_trial_and_compares_at_the_same_cost(results):
    agents = results.agents[0]
    one = summary.luck(results, agents)
    many = results._replace(
        agents=[agents, agents._replace(account=account("x", -agents.account.returns))]
    )
    more = summary.luck(many, agents)
    assert len(summary.ratios(many)) == 2 * SEEDS
    assert all(a > b for a, b in zip(one.deflated, more.deflated, strict=True))
    assert one.over_market[1] < 0  # It rises by 2 % a bar, for the same cost.
    assert max(one.even_market) < min(one.even_cash)
    elsewhere = measures.sharpe(agents.account.returns) * 2
    assert one.over_control[0] < np.median(elsewhere) < one.over_control[1]


def discounted(noise, gamma, bars):
    """Returns to come, by their sum."""
    weights = gamma ** np.arange(60)
    return np.array([weights @ noise[i : i + 60] for i in range(bars - 60)])


def test_a_critic_that_is_right_covers_what_it_says(results):
    """Returns to come of normal steps are normal; 3 · 2 · 386 of them are known."""
    base, gamma, deviation = results.agents[0], 0.8, 0.01
    growth = np.log1p(base.account.returns)
    to_come = discounted(growth[0, :BARS], gamma, BARS)
    scale = deviation / math.sqrt(1 - gamma**2)
    assert to_come.std() == pytest.approx(scale, rel=0.1)
    right = scale * stats.norm.ppf(LEVELS)
    said = np.broadcast_to(right, base.predicted.shape)
    covered = summary.coverage(base._replace(predicted=said))
    np.testing.assert_allclose(covered, LEVELS, atol=0.05)
    low = summary.coverage(base._replace(predicted=said - 1.0))
    np.testing.assert_array_equal(low, 0.0)


def test_only_what_is_known_counts(results):
    """At γ = 0.8 the last 13 bars of a fold owe more than 5 %; here they are wrong."""
    base = results.agents[0]
    said = np.full_like(base.predicted, 1.0)
    said[:, :, -13:] = -1.0
    np.testing.assert_array_equal(summary.coverage(base._replace(predicted=said)), 1.0)
    said[:, :, -14:] = -1.0
    assert summary.coverage(base._replace(predicted=said)).max() < 1.0
    assert 0.8**14 < 0.05 < 0.8**13


def test_where_nothing_is_known_nothing_is_said(results):
    base = results.agents[0]
    for gamma in (1.0, math.nan):
        assert summary.coverage(base._replace(gamma=gamma)) is None
    unknown = np.full_like(base.predicted, np.nan)
    assert summary.coverage(base._replace(predicted=unknown)) is None


@pytest.mark.parametrize("gain", [0.0, 1.0])
def test_who_went_bankrupt_predicts_nothing_more(results, gain):
    """One of three, in one of two tests, after a tenth of the bars, poor or rich."""
    base, ruin = results.agents[0], BARS // 10
    returns = base.account.returns.copy().reshape(SEEDS, FOLDS, BARS)
    returns[1, 1, 0] = gain
    returns[1, 1, ruin], returns[1, 1, ruin + 1 :] = -0.99, 0.0
    account = base.account._replace(returns=returns.reshape(SEEDS, -1))
    right = np.full_like(base.predicted, 1.0)
    right[1, 1, ruin + 1 :] = -9.0
    poor = base._replace(account=account, predicted=right)
    assert np.argwhere(summary.ruined(poor)).tolist() == [[1, 1]]
    np.testing.assert_array_equal(summary.coverage(poor), 1.0)
    right[1, 1, ruin] = -9.0
    assert summary.coverage(poor._replace(predicted=right)).max() < 1.0
    assert not summary.ruined(base).any()

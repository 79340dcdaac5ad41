"""Plans without learning: worked by hand, blind to what comes, and as much traded."""

import dataclasses

import numpy as np
import pytest
from backtest import backtest
from traders import FEATURES

from ppo_jax.backtests import baselines, measures
from ppo_jax.backtests.baselines import Schedule
from ppo_jax.backtests.folds import Span
from ppo_jax.envs.trading import RandomWalk, Trading
from ppo_jax.envs.trading.bars import DAYS
from ppo_jax.envs.trading.causality import changed_after

WALK = RandomWalk(num_bars=600, num_assets=3)
SPAN = Span(300, 400)


@pytest.fixture(scope="module")
def env():
    return Trading(WALK, features=FEATURES, borrow=0.0)


def played(env, *schedules, costs=(0.0,)):
    markets = [dataclasses.replace(env, cost=cost) for cost in costs]
    return baselines.play(markets, SPAN.first, [*schedules])


def test_who_holds_has_what_the_prices_are(env):
    """Bought at the opens of bar 301 for 50 bp of all; interest is 0 here."""
    schedule = baselines.hold(WALK.bars.close, SPAN, DAYS)
    track = played(env, schedule, schedule, costs=(0.0, 50.0))
    for row, cost in zip(track.growth, (0.0, 0.005), strict=True):
        close, bought = WALK.bars.close[301:401], WALK.bars.open[301]
        worth = (close / bought).mean(axis=1) - cost
        np.testing.assert_allclose(np.exp(row.cumsum()), worth, rtol=2e-5)
    assert (track.turnover[:, 1:] == 0).all()
    np.testing.assert_allclose(track.turnover[:, 0], 1.0, rtol=1e-6)


@dataclasses.dataclass(frozen=True, eq=False, repr=False)
class Halted(RandomWalk):
    """The first asset is not traded at the first two bars of the span's trades."""

    def load(self):
        bars = super().load()
        bars.tradable[301:303, 0] = False
        return bars


def test_who_holds_buys_what_is_halted_as_soon_as_it_is_traded():
    """The others at bar 301, and this one at 303: a third of the equity there."""
    env = Trading(Halted(600, 3), features=FEATURES, borrow=0.0, leverage=2.0)
    schedule = baselines.hold(WALK.bars.close, SPAN, DAYS)
    track = played(env, schedule)
    close, fill = WALK.bars.close, WALK.bars.open
    shares = 1 / 3 / fill[301] * [0, 1, 1]
    equity = 1 / 3 + shares @ fill[303]
    shares[0] = equity / 3 / fill[303, 0]
    cash = 1 / 3 - equity / 3
    np.testing.assert_allclose(
        np.exp(track.growth[0].cumsum())[2:], cash + close[303:401] @ shares, rtol=2e-5
    )
    traded = np.flatnonzero(track.turnover[0] > 0)
    assert traded.tolist() == [0, 2]


@pytest.mark.parametrize("name", ["volatility 10 %", "momentum 12-1"])
def test_a_rule_as_a_trader_by_hand(env, name):
    schedule = baselines.RULES[name](WALK.bars.close, SPAN, DAYS)
    track = played(env, schedule, costs=(20.0,))
    if name == "momentum 12-1":  # Every month anew; by hand, only those bars.
        bars = WALK.bars._replace(tradable=np.zeros((600, 3), bool))
        bars.tradable[SPAN.first + 1 : SPAN.last + 1] = schedule.trades[:, None]
    else:
        bars = WALK.bars
    rows = backtest(bars, schedule.positions, SPAN.first, cost=20.0)
    growth, turnover = (np.array([row[i] for row in rows]) for i in (5, 3))
    np.testing.assert_allclose(track.growth[0], growth, atol=2e-6)
    np.testing.assert_allclose(track.turnover[0], turnover, atol=2e-6)


@pytest.mark.parametrize("name", baselines.RULES)
def test_a_rule_sees_nothing_of_later_prices(name):
    rule, bars = baselines.RULES[name], WALK.bars
    before = rule(bars.close, SPAN, DAYS)
    after = rule(changed_after(bars, 350).close, SPAN, DAYS)
    for one, other in zip(before, after, strict=True):
        np.testing.assert_array_equal(one[:51], other[:51])  # Bars 300 to 350.


def test_momentum_is_that_of_a_year_but_for_a_month():
    close = np.ones((600, 2))
    close[100:290] = [2.0, 0.5]  # Over bars 48 to 279, one rose and one fell.
    schedule = baselines.momentum(close, SPAN, DAYS)
    np.testing.assert_array_equal(schedule.positions[0], [0.5, 0.0])
    assert schedule.trades.nonzero()[0].tolist() == [0, 21, 42, 63, 84]


def test_a_month_of_weeks_is_four_bars():
    close = np.ones((600, 2))
    close[250:297] = [2.0, 0.5]  # Of a span from 300 on, 52 to 4 bars before.
    schedule = baselines.momentum(close, SPAN, 365.25 / 7)
    np.testing.assert_array_equal(schedule.positions[0], [0.5, 0.0])
    np.testing.assert_array_equal(schedule.positions[1], [0.0, 0.0])
    assert schedule.trades.nonzero()[0].tolist() == [*range(0, 100, 4)]


@pytest.mark.parametrize("year", [DAYS, 365.25])
def test_steady_holds_less_of_what_moves_more(year):
    close = np.cumprod(1 + 0.02 * np.tile([[1.0], [-1.0]], (300, 1)), axis=0)
    (share,) = np.unique(baselines.steady(close, SPAN, year).positions.round(9))
    assert share == pytest.approx(0.1 / (0.02 * np.sqrt(year)))


def test_elsewhere_as_much_is_traded(env):
    """Of positions that change now and then; prices move them a little as well."""
    random = np.random.default_rng(0)
    changes = random.random(SPAN.bars) < 0.2
    changes[0] = True
    held = random.dirichlet(np.ones(3), SPAN.bars)[changes.cumsum() - 1]
    own = played(env, Schedule(held, changes))
    moved = baselines.elsewhere(held, own.turnover[0], random)
    assert not np.array_equal(moved.positions, held)
    other = played(env, moved)
    pair = measures.yearly(own.turnover), measures.yearly(other.turnover)
    assert pair[0] == pytest.approx(pair[1], rel=0.1)


def test_no_more_is_held_than_leverage_allows(env):
    wild = Schedule(np.full((SPAN.bars, 3), 2.0), np.arange(SPAN.bars) == 0)
    assert played(env, wild).turnover[0, 0] == pytest.approx(1.0)

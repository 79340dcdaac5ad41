"""Measures of a track: numbers worked by hand, and what other libraries say."""

import numpy as np
import pytest

from ppo_jax.backtests import measures

HAND = np.array([0.1, -0.2, 0.25, -0.1, 0.0, 0.3])
"""Equity 1, 1.1, 0.88, 1.1, 0.99, 0.99, 1.287."""


@pytest.fixture(scope="module")
def returns():
    """Three years of days with fat tails."""
    return 0.0004 + 0.01 * np.random.default_rng(3).standard_t(4, size=756)


def test_a_track_worked_by_hand():
    account = [1, 1.1, 0.88, 1.1, 0.99, 0.99, 1.287]
    np.testing.assert_allclose(measures.equity(HAND), account, rtol=1e-12)
    mean, variance = 0.35 / 6, (0.2125 - 6 * (0.35 / 6) ** 2) / 5
    expected = {
        measures.cagr: 1.287 ** (252 / 6) - 1,
        measures.volatility: np.sqrt(252 * variance),
        measures.sharpe: np.sqrt(252) * mean / np.sqrt(variance),
        measures.sortino: np.sqrt(252) * mean / np.sqrt(0.05 / 6),
        measures.max_drawdown: 0.2,
        measures.drawdown_bars: 2,  # 0.88, regained at once; then 0.99 twice.
        measures.var: 0.175,  # A quarter of the way from −0.2 to −0.1.
        measures.cvar: 0.2,
        measures.hit_rate: 0.5,
    }
    for measure, value in expected.items():
        np.testing.assert_allclose(measure(HAND), value, rtol=1e-9)
    np.testing.assert_allclose(measures.calmar(HAND, 6), 0.287 / 0.2, rtol=1e-9)


def test_axes_before_time_are_tracks_of_their_own(returns):
    stack = np.stack([returns, returns[::-1]]).reshape(2, 1, -1)
    for measure in (measures.sharpe, measures.max_drawdown, measures.cvar):
        both = measure(stack)
        assert both.shape == (2, 1)
        np.testing.assert_allclose(both[0, 0], measure(returns))
        np.testing.assert_allclose(both[1, 0], measure(returns[::-1]))


def test_what_never_moves_has_no_ratio():
    still = np.zeros(10)
    for measure in (measures.sharpe, measures.sortino, measures.calmar):
        assert np.isnan(measure(still))
    assert measures.max_drawdown(still) == measures.drawdown_bars(still) == 0
    assert np.isnan(measures.break_even(still, still, 5.0))


def test_an_account_that_lost_everything_stays_lost():
    account = measures.equity(np.array([0.5, -1.2, 3.0]))
    assert np.isfinite(account).all() and account[-1] < 1e-10


def test_at_the_break_even_cost_nothing_is_left_over_a_benchmark(returns):
    """Worked anew at that cost, with the same trades."""
    random = np.random.default_rng(0)
    trades, benchmark = random.random(756) / 10, 0.0002 * np.ones(756)
    gross = returns + 0.002
    paid = gross - 1e-4 * 7.0 * trades
    even = measures.break_even(paid, trades, 7.0, benchmark)
    at_even = gross - 1e-4 * even * trades
    np.testing.assert_allclose(at_even.mean(), benchmark.mean(), atol=1e-12)
    assert measures.yearly(trades) == pytest.approx(252 * trades.mean())


def test_as_empyrical_says(returns):
    other = pytest.importorskip("empyrical")
    pairs = {
        measures.cagr: other.annual_return(returns),
        measures.volatility: other.annual_volatility(returns),
        measures.sharpe: other.sharpe_ratio(returns),
        measures.sortino: other.sortino_ratio(returns),
        measures.calmar: other.calmar_ratio(returns),
        measures.max_drawdown: -other.max_drawdown(returns),
        measures.var: -other.value_at_risk(returns),
        measures.cvar: -other.conditional_value_at_risk(returns),
    }
    for measure, value in pairs.items():
        np.testing.assert_allclose(measure(returns), value, rtol=1e-9)


def test_as_ffn_says(returns):
    ffn = pytest.importorskip("ffn")
    pandas = pytest.importorskip("pandas")
    days = pandas.bdate_range("2000-01-03", periods=757)
    prices = pandas.Series(measures.equity(returns), days)
    np.testing.assert_allclose(
        measures.max_drawdown(returns), -ffn.calc_max_drawdown(prices), rtol=1e-9
    )
    series = prices.to_returns().dropna()
    np.testing.assert_allclose(
        measures.sharpe(returns), ffn.calc_sharpe(series, nperiods=252), rtol=1e-9
    )

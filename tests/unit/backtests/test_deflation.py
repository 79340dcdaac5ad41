"""The deflated Sharpe ratio against the example of its authors."""

import math

import numpy as np
import pytest

from ppo_jax.backtests import deflation

YEAR = 250
"""Bars of a year in the paper."""


def said(trials, skew=-3.0, kurtosis=10.0):
    """A Sharpe ratio of 2.5 a year, five years, found among trials of variance ½."""
    above = deflation.hurdle(trials, math.sqrt(1 / (2 * YEAR)))
    return deflation.probability(2.5 / math.sqrt(YEAR), above, 1250, skew, kurtosis)


def test_the_numbers_of_the_paper():
    """0.1132 and 0.9004; of 46 trials 0.9505, as of 88 of normal returns."""
    assert round(deflation.hurdle(100, math.sqrt(1 / (2 * YEAR))), 4) == 0.1132
    assert round(said(100), 4) == 0.9004
    assert round(said(46), 4) == 0.9505
    assert round(said(88, 0.0, 3.0), 4) == 0.9505


def test_the_hurdle_is_the_best_of_so_many_normal_numbers():
    """For large N, say the authors; of 50 they are 1.2 % too high."""
    draws = np.random.default_rng(0).standard_normal((20_000, 50)).max(axis=1)
    assert deflation.hurdle(50, 1.0) == pytest.approx(draws.mean(), rel=0.02)


def test_one_trial_has_no_hurdle_and_more_have_a_higher_one():
    returns = 0.001 + 0.01 * np.random.default_rng(0).standard_normal(1000)
    own = returns.mean() / returns.std(ddof=1)
    alone = deflation.deflated(returns, np.array([own]))
    luck = np.random.default_rng(1).normal(0.0, 0.03, 1000)
    few, many = (deflation.deflated(returns, luck[:n]) for n in (10, 1000))
    assert alone > few > many
    assert alone == pytest.approx(
        deflation.NORMAL.cdf(own * math.sqrt(999) / math.sqrt(1 + own**2 / 2)), abs=0.01
    )


def test_a_trial_without_a_ratio_still_counts():
    returns = 0.001 + 0.01 * np.random.default_rng(0).standard_normal(500)
    luck = np.random.default_rng(1).normal(0.0, 0.03, 20)
    unknown = np.concatenate([luck, np.full(20, np.nan)])
    more = deflation.deflated(returns, unknown)
    assert more == deflation.deflated(returns, luck, elsewhere=20)
    assert deflation.deflated(returns, luck, 10**18) < more
    assert more < deflation.deflated(returns, luck)
    assert math.isnan(deflation.deflated(np.zeros(9), luck))


@pytest.mark.parametrize("known", [1, 2], ids=["alone", "with a twin"])
def test_the_best_of_many_without_skill_is_as_good_as_chance(known):
    """Although nothing is known of the others, and its twin is hardly another one."""
    rng, found = np.random.default_rng(3), []
    for _ in range(200):
        tracks = 0.01 * rng.standard_normal((50, 500))
        ratios = tracks.mean(axis=1) / tracks.std(axis=1, ddof=1)
        best = ratios.argmax()
        trials = np.full(50, np.nan)
        trials[:known] = ratios[best] * np.array([1.0, 0.999])[:known]
        found.append(deflation.deflated(tracks[best], trials))
    assert 0.4 < np.median(found) < 0.6


def test_as_ffn_says():
    """Which takes out the bias of skew and kurtosis: less than 0.2 % at 2000 bars."""
    ffn = pytest.importorskip("ffn")
    pandas = pytest.importorskip("pandas")
    returns = 0.0007 + 0.01 * np.random.default_rng(2).standard_t(5, size=2000)
    luck = np.random.default_rng(1).normal(0.0, 0.02, 40)
    days = pandas.bdate_range("2000-01-03", periods=2000)
    expected = ffn.calc_deflated_sharpe_ratio(
        pandas.Series(returns, days), luck, nperiods=252, annualized_trials=False
    )
    assert deflation.deflated(returns, luck) == pytest.approx(expected, abs=2e-3)

"""Thin curves, against all points by brute force."""

import numpy as np
import pytest

from ppo_jax.reports.thinning import thinned

RANDOM = np.random.default_rng(0)


@pytest.mark.parametrize("count", [4, 5, 60, 239])
def test_extremes_and_ends_stay(count):
    """Of 10 000 points, some of them unknown; no value is made up."""
    x, y = np.arange(10_000.0), RANDOM.normal(size=10_000).cumsum()
    y[RANDOM.random(y.size) < 0.2] = np.nan
    thin_x, thin_y = thinned(x, y, count)
    assert thin_x.size <= count and (np.diff(thin_x) > 0).all()
    assert thin_x[0] == x[0] and thin_x[-1] == x[-1]
    np.testing.assert_array_equal(thin_y, y[thin_x.astype(int)])
    assert np.nanmin(thin_y) == np.nanmin(y[1:-1])
    assert np.nanmax(thin_y) == np.nanmax(y[1:-1])


def test_a_spike_of_one_point_is_to_be_seen_where_it_is():
    y = np.zeros(100_000)
    y[61_803] = -1.0
    x, thin = thinned(np.arange(y.size), y, 100)
    assert x[thin < 0].tolist() == [61_803]


def test_a_long_gap_stays_a_gap():
    y = np.ones(1000)
    y[300:700] = np.nan
    x, thin = thinned(np.arange(1000), y, 50)
    inside = thin[(x > 320) & (x < 680)]
    assert inside.size and np.isnan(inside).all()


def test_a_short_curve_stays_as_it_is():
    x = np.arange(7.0)
    assert thinned(x, x, 7) == (x, x) or thinned(x, x, 7)[0] is x

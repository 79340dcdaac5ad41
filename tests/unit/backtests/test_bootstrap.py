"""The stationary bootstrap against what its authors prove of it."""

import numpy as np
import pytest

from ppo_jax.backtests import bootstrap


@pytest.fixture(scope="module")
def series():
    """Neighbours depend on each other, ρ = 0.6."""
    noise, found = np.random.default_rng(1).standard_normal(300), [0.0]
    for shock in noise:
        found.append(0.6 * found[-1] + shock)
    return np.array(found[1:])


def variance_of_the_mean(x, p):
    """Lemma 1 of Politis and Romano, 1994."""
    n, centred = len(x), x - x.mean()
    total = (centred**2).mean()
    for lag in range(1, n):
        covariance = (centred[: n - lag] * centred[lag:]).sum() / n
        weight = (1 - lag / n) * (1 - p) ** lag + lag / n * (1 - p) ** (n - lag)
        total += 2 * weight * covariance
    return total / n


@pytest.mark.parametrize("block", [1.0, 10.0])
def test_the_mean_varies_as_its_authors_prove(series, block):
    """Of 20 000 draws, the deviation is known to 0.5 %."""
    random = np.random.default_rng(0)
    means = series[bootstrap.places(random, 20_000, 300, block)].mean(axis=1)
    expected = np.sqrt(variance_of_the_mean(series, 1 / block))
    assert means.std() == pytest.approx(expected, rel=0.02)
    assert means.mean() == pytest.approx(series.mean(), abs=4 * expected / 20_000**0.5)


def test_blocks_matter_where_neighbours_depend_on_each_other(series):
    def mean(x):
        return x.mean(axis=-1)

    apart = bootstrap.interval(mean, series[None], block=1.0)
    blocks = bootstrap.interval(mean, series[None], block=20.0)
    ratio = variance_of_the_mean(series, 1 / 20) / variance_of_the_mean(series, 1.0)
    assert np.sqrt(ratio) > 1.3
    np.testing.assert_allclose(np.diff(blocks) / np.diff(apart), ratio**0.5, rtol=0.1)
    assert blocks[0] < series.mean() < blocks[1]


def test_the_same_bars_are_drawn_of_all_series(series):
    pair = series[None], series[None] - 2.0
    gap = bootstrap.interval(lambda x, y: (x - y).mean(axis=-1), *pair)
    np.testing.assert_allclose(gap, (2.0, 2.0))


def test_tracks_are_drawn_as_well(series):
    """Of two flat tracks, the interval reaches from one to the other."""
    flat = np.array([[1.0] * 30, [3.0] * 30])
    assert bootstrap.interval(lambda x: x.mean(axis=-1), flat) == (1.0, 3.0)


def test_a_measure_that_is_nowhere_known_has_no_interval():
    ends = bootstrap.interval(lambda x: np.full(len(x), np.nan), np.ones((1, 5)))
    assert np.isnan(ends).all()


def test_as_arch_says(series):
    arch = pytest.importorskip("arch.bootstrap")
    other = arch.StationaryBootstrap(20, series, seed=0)
    expected = other.conf_int(np.mean, 4000, method="percentile").ravel()
    found = bootstrap.interval(lambda x: x.mean(axis=-1), series[None], draws=4000)
    width = np.diff(expected).item()
    np.testing.assert_allclose(found, expected, atol=0.05 * width)

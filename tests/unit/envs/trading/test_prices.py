"""Prices are their content, wherever they come from."""

import pickle

import numpy as np

from ppo_jax.envs.trading import RandomWalk, Shuffled


def test_prices_of_the_same_content_are_equal():
    walk = RandomWalk(100, 2)
    assert walk == RandomWalk(100, 2) and hash(walk) == hash(RandomWalk(100, 2))
    assert walk != RandomWalk(100, 2, seed=1) and walk != "prices"
    assert repr(walk).startswith("RandomWalk(num_bars=100, num_assets=2, volatility=0.")
    assert f"sha256='{walk.sha256}'" in repr(walk)
    assert pickle.loads(pickle.dumps(walk)) == walk


def test_a_random_walk_has_no_drift():
    """Mean and deviation of simple returns, overnight and from close to close."""
    bars = RandomWalk(100_000, 2, volatility=0.3).bars
    day = bars.close[1:] / bars.close[:-1] - 1
    night = bars.open[1:] / bars.close[:-1] - 1
    for returns, share in ((day, 1.0), (night, 0.25)):
        sigma = 0.3 * np.sqrt(share / 252)
        np.testing.assert_allclose(returns.std(axis=0), sigma, rtol=0.02)
        error = sigma / np.sqrt(len(returns))
        assert (np.abs(returns.mean(axis=0)) < 4 * error).all()


def test_shuffling_keeps_the_bars_and_forgets_their_order():
    walk = RandomWalk(500, 2)
    bars, other = walk.bars, Shuffled(walk, seed=3).bars
    ours, theirs = (np.diff(np.log(x.close), axis=0) for x in (bars, other))
    assert not np.allclose(ours, theirs)
    np.testing.assert_allclose(np.sort(ours, axis=0), np.sort(theirs, axis=0))
    order = [np.argmin(np.abs(ours[:, 0] - x)) for x in theirs[:, 0]]
    np.testing.assert_allclose(ours[order], theirs, atol=1e-12)
    days = (np.log(x.close / x.open)[1:] for x in (bars, other))
    np.testing.assert_allclose(next(days)[order], next(days), atol=1e-12)

"""Features against loops over bars."""

import math

import numpy as np
import pytest

from ppo_jax.envs.trading import Features, RandomWalk

FEATURES = Features(horizons=(1, 4), volatility=3, drawdown=6)


def test_features_are_those_of_their_definition():
    bars = RandomWalk(40, 2).bars
    found = FEATURES(bars)
    assert found.shape == (40, 2, 4)
    for asset, p in enumerate(bars.close.T.tolist()):
        for t in range(6, 40):
            moves = [math.log(p[i] / p[i - 1]) ** 2 for i in range(t - 2, t + 1)]
            expected = [
                math.log(p[t] / p[t - 1]),
                math.log(p[t] / p[t - 4]),
                math.sqrt(sum(moves) / 3),
                p[t] / max(p[t - 6 : t + 1]) - 1,
            ]
            np.testing.assert_allclose(found[t, asset], expected, rtol=1e-9, atol=1e-12)
    assert not found[:6].any()


@pytest.mark.parametrize("horizons", [(), (0, 5)])
def test_horizons_are_bars_of_the_past(horizons):
    with pytest.raises(ValueError, match=r"Features\.horizons: expected numbers"):
        Features(horizons=horizons)

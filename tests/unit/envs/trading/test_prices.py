"""Prices are their content, wherever they come from."""

import dataclasses
import pickle
from typing import Any

import numpy as np
import pytest

from ppo_jax.envs.trading import (
    Features,
    PriceError,
    Prices,
    RandomWalk,
    Shuffled,
)
from ppo_jax.envs.trading.causality import require_causal


def test_prices_of_the_same_content_are_equal():
    walk = RandomWalk(100, 2)
    assert walk == RandomWalk(100, 2) and hash(walk) == hash(RandomWalk(100, 2))
    assert walk != RandomWalk(100, 2, seed=1) and walk != "prices"
    assert repr(walk).startswith("RandomWalk(num_bars=100, num_assets=2, volatility=0.")
    assert f"sha256='{walk.sha256}'" in repr(walk)
    assert pickle.loads(pickle.dumps(walk)) == walk


def test_a_random_walk_has_no_drift():
    """Mean and deviation of simple returns, overnight and from close to close."""
    bars = RandomWalk(68_424, 2, volatility=0.3).bars
    day = bars.close[1:] / bars.close[:-1] - 1
    night = bars.open[1:] / bars.close[:-1] - 1
    assert str(bars.times[-1])[:10] == "2262-04-10"
    assert (np.diff(bars.times.view(int)) > 0).all()
    for returns, share in ((day, 1.0), (night, 0.25)):
        sigma = 0.3 * np.sqrt(share / 252)
        np.testing.assert_allclose(returns.std(axis=0), sigma, rtol=0.02)
        error = sigma / np.sqrt(len(returns))
        assert (np.abs(returns.mean(axis=0)) < 4 * error).all()


@pytest.mark.parametrize(
    ("field", "value", "expected"),
    [
        ("num_bars", 0, "1 to 68424"),
        ("num_bars", 68_425, "1 to 68424"),
        ("num_bars", 100.0, "1 to 68424"),
        ("num_assets", 0, "1 or more"),
        ("volatility", -0.1, "a finite number ≥ 0"),
        ("overnight", 1.5, "a number in [0, 1], or None"),
    ],
)
def test_a_random_walk_that_cannot_be_is_told(field, value, expected):
    """At most to 2262-04-10, a Thursday before nanoseconds overflow."""
    with pytest.raises(PriceError, match=f"RandomWalk.{field}: expected ") as told:
        RandomWalk(**{field: value})
    assert expected in str(told.value) and str(told.value).endswith(f"got {value}")


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


@dataclasses.dataclass(frozen=True, eq=False, repr=False)
class Mine(Prices):
    """Prices of a user, with other arrays than there should be."""

    others: Any

    def load(self):
        bars = RandomWalk(20, 2).bars
        return bars._replace(**self.others(bars))


def put(array, value, place=(7, 1)):
    array = array.copy()
    array[place] = value
    return array


WRONG = {
    "close: expected a price of 1e-30 to 1e+30 for WALK1 at 2000-01-12": [
        lambda bars: {"close": put(bars.close, np.nan)},
        lambda bars: {"close": put(bars.close, np.inf)},
        lambda bars: {"close": put(bars.close, 0.0)},
        lambda bars: {"close": put(bars.close, -1.0)},
        lambda bars: {"close": put(bars.close, 1e-31)},
        lambda bars: {"close": put(bars.close, 1e31)},
    ],
    "open: expected a price of 1e-30 to 1e+30 for WALK1 at 2000-01-12": [
        lambda bars: {"open": put(bars.open, np.nan)}
    ],
    "times: expected one after 2000-01-11": [
        lambda bars: {"times": put(bars.times, bars.times[6], 7)}
    ],
    "times: expected one after 2000-01-28": [lambda b: {"times": b.times[::-1]}],
    "times: expected datetime64[ns], got int64": [
        lambda bars: {"times": bars.times.astype(int)}
    ],
    "close: expected (20, 1), as there are so many times and symbols, got (20, 2)": [
        lambda bars: {"symbols": ("A",)}
    ],
    "tradable: expected (20, 2), as there are so many times and symbols, got (20,)": [
        lambda bars: {"tradable": bars.tradable[:, 0]}
    ],
}


@pytest.mark.parametrize("said", WRONG)
def test_prices_of_ones_own_are_those_of_a_market(said):
    for others in WRONG[said]:
        with pytest.raises(PriceError) as told:
            Mine(others)
        assert str(told.value).startswith(f"Mine: {said}"), told.value
    assert Mine(lambda bars: {}).bars.close.shape == (20, 2)
    assert Mine(lambda bars: {"open": None}).bars.fill is not None


def test_prices_of_ones_own_may_be_in_other_types():
    """And are then the same prices, whose features are of the past as well."""

    def others(bars):
        flags, days = bars.tradable.astype(int), bars.times.astype("datetime64[D]")
        plain = {"symbols": list(bars.symbols), "close": bars.close.tolist()}
        return plain | {"tradable": flags, "times": days}

    found = Mine(others)
    assert found == RandomWalk(20, 2) and found.bars.tradable.dtype == bool
    single = Mine(lambda bars: {"close": bars.close.astype(np.float32)}).bars
    require_causal(Features((1, 2), 3, 3), single)

"""Jumps that look like splits, and others."""

import numpy as np
import pandas as pd

from ppo_jax.envs.trading.splits import factors


def found(closes, opens=None):
    rows = pd.DataFrame({"symbol": "A", "close": closes})
    rows = rows if opens is None else rows.assign(open=opens)
    return factors(rows).tolist()


def test_ratios_of_splits_are_found():
    assert found([100.0, 51.0, 16.9, 170.0]) == [1.0, 0.5, 1 / 3, 10.0]


def test_crashes_are_none():
    """AMD fell by a third on 2002-10-03, AAPL by 52 % on 2000-09-29."""
    assert found([100.0, 66.7]) == [1.0, 1.0]
    assert found([100.0, 48.1]) == [1.0, 1.0]


def test_a_split_is_overnight():
    """A price that halves during the day was sold."""
    assert found([100.0, 50.0], opens=[100.0, 99.0]) == [1.0, 1.0]
    assert found([100.0, 70.0], opens=[100.0, 50.0]) == [1.0, 0.5]


def test_assets_are_apart():
    rows = pd.DataFrame({"symbol": ["A", "B", "A", "B"], "close": [100.0, 50, 98, 25]})
    assert np.array_equal(factors(rows), [1.0, 1.0, 1.0, 0.5])

"""Jumps of prices that look like splits of shares."""

import numpy as np
import pandas as pd

from ppo_jax.envs.trading.files import Column, Frame

RATIOS = (2, 3, 4, 5, 6, 7, 8, 9, 10, 15, 20, 25, 30, 50, 100)
"""Numbers of shares that one share is split into, or that are merged into one."""
LIKE = 0.03
"""Largest relative difference of a jump from a ratio."""


def factors(rows: Frame) -> Column:
    """Returns the exact ratio of each row's overnight jump that looks like a split.

    The ratio is 1 for other rows. Rows are in the order of time for each asset. The
    jump is that from a close to the next open, or to the next close if only closes are
    known.
    """
    before = rows.groupby("symbol", sort=False)["close"].shift(1)
    jump = (rows["open" if "open" in rows else "close"] / before).fillna(1.0)
    found = pd.Series(1.0, rows.index)
    for ratio in RATIOS:
        for exact in (ratio, 1 / ratio):
            found[np.abs(jump / exact - 1) <= LIKE] = exact
    return found

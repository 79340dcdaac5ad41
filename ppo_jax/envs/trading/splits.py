"""Jumps of prices that look like splits of shares."""

import numpy as np
import pandas as pd

from ppo_jax.envs.trading.files import Column, Frame

RATIOS = (2, 3, 4, 5, 6, 7, 8, 9, 10, 15, 20, 25, 30, 50, 100)
"""How many shares become of one; and of how many becomes one."""
LIKE = 0.03
"""How far a jump may be from a ratio, as a share of it."""


def factors(rows: Frame) -> Column:
    """What each row's jump overnight is, if it looks like a split; else 1.

    Rows are in the order of time for each asset. The jump is that from a close to the
    next open, or to the next close where only closes are known.
    """
    before = rows.groupby("symbol", sort=False)["close"].shift(1)
    jump = (rows["open" if "open" in rows else "close"] / before).fillna(1.0)
    found = pd.Series(1.0, rows.index)
    for ratio in RATIOS:
        for exact in (ratio, 1 / ratio):
            found[np.abs(jump / exact - 1) <= LIKE] = exact
    return found

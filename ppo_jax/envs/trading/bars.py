"""Prices bar by bar, as arrays of the host."""

import hashlib
from typing import NamedTuple

import numpy as np

DAYS = 252
"""Trading days of a year."""
LIKE = 0.1
"""Largest relative difference from `DAYS` at which bars count as daily: holidays
differ."""


class Bars(NamedTuple):
    """N bars of A assets, in the order of time; nothing is missing."""

    times: np.ndarray
    """Time at which each bar closed, or its day; `datetime64[ns]`, `[N]`."""
    symbols: tuple[str, ...]
    """Names of the assets, `[A]`."""
    close: np.ndarray
    """Last prices, float64 `[N, A]`."""
    open: np.ndarray | None
    """First prices, float64 `[N, A]`; None: only closes are known."""
    tradable: np.ndarray
    """Whether there was any trade, bool `[N, A]`; without one, no order is filled."""

    @property
    def fill(self) -> np.ndarray:
        """Prices at which orders from the close before are filled, `[N, A]`."""
        return self.close if self.open is None else self.open

    @property
    def years(self) -> np.ndarray:
        """Time since the bar before, in years of 365.25 days `[N]`; 0 for the first."""
        year = np.timedelta64(365 * 24 + 6, "h")
        return np.diff(self.times, prepend=self.times[:1]) / year

    @property
    def of_a_year(self) -> float:
        """Bars of a year: 252 if they are daily, otherwise as many as there were."""
        found = (len(self.times) - 1) / float(self.years.sum())
        return DAYS if abs(found / DAYS - 1) < LIKE else found


def digest(bars: Bars) -> str:
    """Returns the SHA-256 of all contents of bars."""
    seen = hashlib.sha256(repr(bars.symbols).encode())
    times = bars.times.astype("datetime64[ns]").astype(np.int64)
    for array in (times, bars.close, bars.open, bars.tradable):
        if array is None:
            seen.update(b"none")
        else:
            seen.update(f"{array.dtype}{array.shape}".encode() + array.tobytes())
    return seen.hexdigest()

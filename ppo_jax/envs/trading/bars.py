"""Prices bar by bar, as arrays of the host."""

import hashlib
from typing import NamedTuple

import numpy as np

DAYS = 252
"""Of a year, those of trading."""
LIKE = 0.1
"""How far as many bars as days may be from that, as a share: holidays differ."""


class Bars(NamedTuple):
    """N bars of A assets, in the order of time; nothing is missing."""

    times: np.ndarray
    """When a bar closed, or the day that it is of; `datetime64[ns]`, `[N]`."""
    symbols: tuple[str, ...]
    """What the assets are called, `[A]`."""
    close: np.ndarray
    """Last prices, float64 `[N, A]`."""
    open: np.ndarray | None
    """First prices, float64 `[N, A]`; None: only closes are known."""
    tradable: np.ndarray
    """Whether there was any trade, bool `[N, A]`: no order is filled where not."""

    @property
    def fill(self) -> np.ndarray:
        """What an order that was decided at the close before is filled at, `[N, A]`."""
        return self.close if self.open is None else self.open

    @property
    def years(self) -> np.ndarray:
        """Time since the bar before, of 365.25 days a year `[N]`; the first has 0."""
        year = np.timedelta64(365 * 24 + 6, "h")
        return np.diff(self.times, prepend=self.times[:1]) / year

    @property
    def of_a_year(self) -> float:
        """Bars of a year: 252 of days without weekends, else as many as there were."""
        found = (len(self.times) - 1) / float(self.years.sum())
        return DAYS if abs(found / DAYS - 1) < LIKE else found


def digest(bars: Bars) -> str:
    """SHA-256 of all that bars say."""
    seen = hashlib.sha256(repr(bars.symbols).encode())
    times = bars.times.astype("datetime64[ns]").astype(np.int64)
    for array in (times, bars.close, bars.open, bars.tradable):
        if array is None:
            seen.update(b"none")
        else:
            seen.update(f"{array.dtype}{array.shape}".encode() + array.tobytes())
    return seen.hexdigest()

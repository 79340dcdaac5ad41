"""Prices bar by bar, as arrays of the host."""

import hashlib
from typing import NamedTuple

import numpy as np

from ppo_jax.envs.trading.files import PriceError

DAYS = 252
"""Trading days of a year."""
LIKE = 0.1
"""Largest relative difference from `DAYS` at which bars count as daily: holidays
differ."""
LEAST_PRICE, MOST_PRICE = 1e-30, 1e30
"""Prices that can be reckoned with in single precision, and divided by."""


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


def in_arrays(bars: Bars) -> Bars:
    """Returns the same bars as arrays of the types that `Bars` names."""
    return Bars(
        times=np.asarray(bars.times),
        symbols=tuple(bars.symbols),
        close=np.asarray(bars.close, np.float64),
        open=None if bars.open is None else np.asarray(bars.open, np.float64),
        tradable=np.asarray(bars.tradable, bool),
    )


def require_whole(bars: Bars, name: str) -> None:
    """Checks that all there should be of bars is there, and can be traded at.

    Args:
        bars: The bars.
        name: Name of their source.

    Raises:
        PriceError: If not; the message names the array, and the first bar and asset.
    """
    if bars.times.dtype.kind != "M":
        told = f"expected datetime64[ns], got {bars.times.dtype}"
        raise PriceError(f"{name}: times: {told}")
    shape = len(bars.times), len(bars.symbols)
    prices = {"close": bars.close, "open": bars.fill}
    for field, array in {**prices, "tradable": bars.tradable}.items():
        if np.shape(array) != shape:
            expected = f"{shape}, as there are so many times and symbols"
            raise PriceError(f"{name}: {field}: expected {expected}, got {array.shape}")
    for bar in np.flatnonzero(~(np.diff(bars.times) > np.timedelta64(0, "ns")))[:1]:
        expected = f"expected one after {bars.times[bar]}, got {bars.times[bar + 1]}"
        raise PriceError(f"{name}: times: {expected}")
    for field, array in prices.items():
        for bar, asset in np.argwhere(
            ~((array >= LEAST_PRICE) & (array <= MOST_PRICE))
        )[:1]:
            where = f"{bars.symbols[asset]} at {bars.times[bar]}"
            expected = f"expected a price of {LEAST_PRICE} to {MOST_PRICE} for {where}"
            raise PriceError(f"{name}: {field}: {expected}, got {array[bar, asset]}")


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

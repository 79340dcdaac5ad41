"""Features of prices, which depend on the past alone."""

import numpy as np

from ppo_jax.component import component, require_field
from ppo_jax.component.bounds import Several
from ppo_jax.envs.trading.bars import Bars


@component
class Features:
    """Features of each asset at the close of each bar, from closes up to that bar.

    With closes p and r_h(t) = ln p(t) − ln p(t − h):

    - r_h for each horizon h: log returns; the longest is the momentum;
    - σ(t): the root of the mean of r_1² over `volatility` bars;
    - d(t) = p(t) / max p − 1, the maximum over the last `drawdown` bars and t: the
      relative distance of a price from its highest.

    A subclass defines other features with `__call__`, `lookback` and fields that are no
    floats. `Trading` refuses features that change if later prices do.

    >>> from ppo_jax.envs.trading.prices import RandomWalk
    >>> features = Features(horizons=(1, 5), volatility=10, drawdown=10)
    >>> features(RandomWalk(num_bars=50, num_assets=3).bars).shape, features.lookback
    ((50, 3, 4), 10)
    """

    horizons: tuple[int, ...] = (1, 5, 21, 63)
    volatility: Several = 21
    drawdown: Several = 63

    def validate(self) -> None:
        """Raises a `ValueError` for an impossible horizon."""
        ok = min(self.horizons, default=0) >= 1
        require_field(self, "horizons", ok, "numbers of bars, at least 1, at least one")

    @property
    def lookback(self) -> int:
        """Number of bars until all features are known."""
        return max(*self.horizons, self.volatility, self.drawdown)

    def __call__(self, bars: Bars) -> np.ndarray:
        """Returns features `[N, A, F]`, float64; 0 for the first `lookback` bars."""
        logs = np.log(bars.close)
        returns = [_change(logs, h) for h in self.horizons]
        variance = _mean(_change(logs, 1) ** 2, self.volatility)
        highest = _highest(bars.close, self.drawdown + 1)
        features = [*returns, np.sqrt(variance), bars.close / highest - 1]
        known = np.arange(len(logs)) >= self.lookback
        return np.where(known[:, None, None], np.stack(features, axis=-1), 0.0)


def _change(x: np.ndarray, bars: int) -> np.ndarray:
    """Returns the change against `bars` bars before; 0 if there were fewer."""
    return np.concatenate([np.zeros_like(x[:bars]), x[bars:] - x[:-bars]])[: len(x)]


def _mean(x: np.ndarray, bars: int) -> np.ndarray:
    """Returns the mean of the last `bars` bars, with zeros before the first one."""
    return _windows(x, bars, 0.0).mean(axis=-1)


def _highest(x: np.ndarray, bars: int) -> np.ndarray:
    """Returns the maximum of the last `bars` bars."""
    return _windows(x, bars, -np.inf).max(axis=-1)


def _windows(x: np.ndarray, bars: int, before: float) -> np.ndarray:
    """Returns the last `bars` bars at each bar, `[N, A, bars]`."""
    padded = np.concatenate([np.full_like(x[:1], before).repeat(bars - 1, axis=0), x])
    return np.lib.stride_tricks.sliding_window_view(padded, bars, axis=0)

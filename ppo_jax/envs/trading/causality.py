"""A check that features do not depend on later prices."""

from typing import Any

import numpy as np

from ppo_jax.component import require
from ppo_jax.envs.trading.bars import Bars

CUTS = 8
"""Number of bars at which features are computed again without the later bars."""


def require_causal(features: Any, bars: Bars) -> np.ndarray:
    """Computes features `[N, A, F]`, and checks that they depend on the past alone.

    At some bars, features are compared with those computed with other bars after it,
    and with none after it.

    Raises:
        ValueError: If features are not finite, of another shape, or change with later
            prices; the message names the bar.
    """
    name, seen = type(features).__name__, np.asarray(features(bars), np.float64)
    count, assets = bars.close.shape
    ok = seen.ndim == 3 and seen.shape[:2] == (count, assets)
    require(ok, name, seen.shape, f"an array [{count}, {assets}, F]")
    for bar, asset, feature in np.argwhere(~np.isfinite(seen))[:1]:
        where = f"feature {feature} of {bars.symbols[asset]} at bar {bar}"
        require(False, name, seen[bar, asset, feature], f"a finite {where}")
    for bar in np.linspace(
        min(features.lookback, count - 2), count - 2, CUTS, dtype=int
    ):
        for other in (until(bars, bar), changed_after(bars, bar)):
            there = np.asarray(features(other), np.float64)[: bar + 1]
            same = np.isclose(there, seen[: bar + 1], rtol=1e-6, atol=1e-9)
            for at, asset, feature in np.argwhere(~same)[-1:]:
                raise ValueError(
                    f"{name}: feature {feature} of {bars.symbols[asset]} at bar {at} "
                    f"is {seen[at, asset, feature]:g}, but "
                    f"{there[at, asset, feature]:g} if prices after bar {bar} are "
                    "others; expected features of the past alone"
                )
    return seen


def until(bars: Bars, bar: int) -> Bars:
    """Returns the bars that were known at the close of a bar."""
    known = slice(bar + 1)
    first = None if bars.open is None else bars.open[known]
    return Bars(
        bars.times[known], bars.symbols, bars.close[known], first, bars.tradable[known]
    )


def changed_after(bars: Bars, bar: int) -> Bars:
    """Returns the same bars up to one, and other bars after it."""
    count, assets = bars.close.shape
    noise = np.exp(np.random.default_rng(bar).normal(0, 0.1, (count, assets)))
    noise[: bar + 1] = 1.0
    first = None if bars.open is None else bars.open * noise
    return bars._replace(close=bars.close * noise, open=first)

"""Whether features know what was not known yet."""

from typing import Any

import numpy as np

from ppo_jax.component import require
from ppo_jax.envs.trading.bars import Bars

CUTS = 8
"""Bars at which it is tried what features say without all later ones."""


def require_causal(features: Any, bars: Bars) -> np.ndarray:
    """Features `[N, A, F]`, once it is known that they are of the past.

    At some bars, they are compared with what they are if the bars after it are others,
    and if there are none.

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
    """What was known at the close of a bar."""
    known = slice(bar + 1)
    first = None if bars.open is None else bars.open[known]
    return Bars(
        bars.times[known], bars.symbols, bars.close[known], first, bars.tradable[known]
    )


def changed_after(bars: Bars, bar: int) -> Bars:
    """The same bars up to one, and others after it."""
    count, assets = bars.close.shape
    noise = np.exp(np.random.default_rng(bar).normal(0, 0.1, (count, assets)))
    noise[: bar + 1] = 1.0
    first = None if bars.open is None else bars.open * noise
    return bars._replace(close=bars.close * noise, open=first)

"""Measures of a track of an account: growth, risk, trades; time is the last axis.

Returns are simple ones of a bar each, float64 `[..., T]`; a year is `bars` of them,
which are days by default. Every measure reduces the last axis. A loss is a positive
number.

References:
    Bacon, `Practical Portfolio Performance Measurement and Attribution`, 2nd ed., 2008.
"""

from typing import Any

import numpy as np

from ppo_jax.envs.trading.bars import DAYS

SHARE = 0.05
"""Share of all bars that is the tail."""
BASIS_POINT = 1e-4


def cagr(returns: np.ndarray, bars: float = DAYS) -> np.ndarray:
    """Returns the growth of a year, compounded, (Π (1 + rₜ))^(bars / T) − 1.

    >>> round(float(cagr(np.array([0.5, 0.5]), bars=2)), 12)
    1.25
    """
    return np.expm1(_growth(returns).mean(axis=-1) * bars)


def volatility(returns: np.ndarray, bars: float = DAYS) -> np.ndarray:
    """Returns the deviation of the returns of a year, √bars · s."""
    return np.sqrt(bars) * returns.std(axis=-1, ddof=1)


def sharpe(returns: np.ndarray, bars: float = DAYS) -> np.ndarray:
    """Returns the Sharpe ratio of a year, √bars · r̄ / s; NaN if nothing ever moves.

    >>> round(float(sharpe(np.array([0.0, 0.02]), bars=1)), 6)
    0.707107
    """
    return np.sqrt(bars) * _ratio(returns.mean(axis=-1), returns.std(axis=-1, ddof=1))


def sortino(returns: np.ndarray, bars: float = DAYS) -> np.ndarray:
    """Returns `sharpe` by the losses alone, √bars · r̄ / √(mean of min(rₜ, 0)²)."""
    losses = np.sqrt(np.square(np.minimum(returns, 0.0)).mean(axis=-1))
    return np.sqrt(bars) * _ratio(returns.mean(axis=-1), losses)


def equity(returns: np.ndarray) -> np.ndarray:
    """Returns the equity of 1, before the first bar and after each, `[..., T + 1]`."""
    start = np.zeros((*returns.shape[:-1], 1))
    growth = _growth(returns).cumsum(axis=-1)
    return np.exp(np.concatenate([start, growth], axis=-1))


def drawdowns(returns: np.ndarray) -> np.ndarray:
    """Returns the share of the highest equity so far that is lost, `[..., T + 1]`.

    >>> drawdowns(np.array([1.0, -0.5, 0.5])).round(3).tolist()
    [0.0, 0.0, 0.5, 0.25]
    """
    account = equity(returns)
    return 1 - account / np.maximum.accumulate(account, axis=-1)


def max_drawdown(returns: np.ndarray) -> np.ndarray:
    """Returns the largest of all drawdowns."""
    return drawdowns(returns).max(axis=-1)


def drawdown_bars(returns: np.ndarray) -> np.ndarray:
    """Returns the most bars in a row below the highest equity so far.

    >>> int(drawdown_bars(np.array([0.1, -0.1, 0.05, 0.2, -0.1])))
    2
    """
    below = drawdowns(returns) > 1e-12
    times = np.arange(below.shape[-1])
    last = np.maximum.accumulate(np.where(below, 0, times), axis=-1)
    return (times - last).max(axis=-1)


def calmar(returns: np.ndarray, bars: float = DAYS) -> np.ndarray:
    """Returns growth of a year divided by the largest drawdown; NaN without one."""
    return _ratio(cagr(returns, bars), max_drawdown(returns))


def var(returns: np.ndarray) -> np.ndarray:
    """Returns the value at risk: the loss of a bar that 5 % of bars exceed."""
    return -np.quantile(returns, SHARE, axis=-1)


def cvar(returns: np.ndarray) -> np.ndarray:
    """Returns the mean loss of the worst 5 % of bars, at least one.

    >>> float(cvar(np.array([-0.3, 0.1, 0.2, 0.0])))
    0.3
    """
    count = max(1, int(np.ceil(SHARE * returns.shape[-1])))
    return -np.sort(returns, axis=-1)[..., :count].mean(axis=-1)


def hit_rate(returns: np.ndarray) -> np.ndarray:
    """Returns the share of bars that gained something."""
    return (returns > 0).mean(axis=-1)


def yearly(turnover: np.ndarray, bars: float = DAYS) -> np.ndarray:
    """Returns the turnover of a year: buys and sales, in units of equity."""
    return bars * turnover.mean(axis=-1)


def break_even(
    returns: np.ndarray,
    turnover: np.ndarray,
    cost: np.ndarray | float,
    benchmark: np.ndarray | float = 0.0,
) -> np.ndarray:
    """Returns the cost, in bp, at which the mean excess over a benchmark is zero.

    c + 10⁴ · mean(rₜ − bₜ) / mean(turnoverₜ) for the same trades, c being the cost that
    returns have paid; the benchmark's own costs stay. Below 0, not even free trades
    would do; NaN without trades.

    Args:
        returns: After costs, `[..., T]`.
        turnover: Trades in each bar, in units of equity, `[..., T]`.
        cost: Paid per unit of turnover, in bp.
        benchmark: Returns of the alternative; 0 is cash.

    >>> float(break_even(np.array([0.0, 0.001]), np.array([1.0, 1.0]), cost=5.0))
    10.0
    """
    excess = (returns - benchmark).mean(axis=-1) / BASIS_POINT
    return cost + _ratio(excess, turnover.mean(axis=-1))


def median(values: Any) -> float:
    """Returns the median of tracks of which a measure is known; NaN if there are none.

    >>> median([1.0, np.nan, 3.0]), median([np.nan])
    (2.0, nan)
    """
    known = np.asarray(values, float)
    known = known[np.isfinite(known)]
    return float(np.median(known)) if known.size else float("nan")


def _growth(returns: np.ndarray) -> np.ndarray:
    """Returns the growth of log equity; a loss of all counts as one of almost all."""
    return np.log1p(np.maximum(returns, -1 + 1e-12))


def _ratio(above: np.ndarray, below: np.ndarray) -> np.ndarray:
    """Returns the quotient; NaN where something is divided by nothing."""
    known = np.abs(below) > 1e-15
    return np.where(known, above / np.where(known, below, 1.0), np.nan)

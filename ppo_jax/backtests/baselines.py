"""Baselines without learning: plans of positions from past prices, on the same account.

A plan gives the positions to hold at the close of each bar, and whether to trade at
all. Without a trade, the numbers of shares stay as they are. Assets that are not traded
then are as soon as they are.
"""

from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from ppo_jax.backtests.folds import Span
from ppo_jax.backtests.playing import Track
from ppo_jax.envs.trading import Trading
from ppo_jax.envs.trading.account import Broker, opened, settled
from ppo_jax.envs.trading.trading import RUIN, Tape
from ppo_jax.envs.trading.trading import tape as tape_of
from ppo_jax.types import Array

MONTH, QUARTER = 1 / 12, 1 / 4
"""Shares of a year."""
VOLATILITY = 0.1
"""Volatility of a year that `steady` aims at."""


class Schedule(NamedTuple):
    """The positions to hold after each decision of a span."""

    positions: np.ndarray
    """Shares of equity, `[bars, A]`."""
    trades: np.ndarray
    """Whether to trade towards these positions, bool `[bars]`."""


Rule = Callable[[np.ndarray, Span, float], Schedule]
"""Function that makes a schedule from closes `[N, A]`, a span and the bars of a year.
Each decision uses closes up to its own bar only."""


def cash(close: np.ndarray, span: Span, year: float) -> Schedule:
    """Holds nothing, ever."""
    return Schedule(np.zeros((span.bars, close.shape[1])), np.zeros(span.bars, bool))


def hold(close: np.ndarray, span: Span, year: float) -> Schedule:
    """Buys equal parts of every asset at the first bar, and never trades after it.

    >>> schedule = hold(np.ones((9, 2)), Span(3, 6), 252)
    >>> schedule.positions[0].tolist(), schedule.trades.tolist()
    ([0.5, 0.5], [True, False, False])
    """
    return Schedule(_equal(close, span), np.arange(span.bars) == 0)


def steady(close: np.ndarray, span: Span, year: float) -> Schedule:
    """Holds equal parts, scaled to a volatility of 10 % a year; their sum is at most 1.

    The volatility is that of equal parts over the last quarter of a year.
    """
    moves = (close[1:] / close[:-1] - 1).mean(axis=1)
    moves = np.concatenate([[0.0], moves])
    quarter = _bars(QUARTER, year)
    recent = [moves[max(1, t - quarter + 1) : t + 1] for t in range(*span)]
    deviation = np.array([np.sqrt(year * (x**2).mean()) for x in recent])
    share = np.minimum(1.0, VOLATILITY / np.maximum(deviation, 1e-12))
    return Schedule(share[:, None] * _equal(close, span), np.ones(span.bars, bool))


def momentum(close: np.ndarray, span: Span, year: float) -> Schedule:
    """Holds equal parts of assets that rose, and cash for others; trades every month.

    An asset rose if its close a month ago is above its close a year ago. Where prices
    begin later, their first close is compared instead.

    References:
        Moskowitz, Ooi and Pedersen, `Time Series Momentum`, 2012.
    """
    bars, month = np.arange(*span), _bars(MONTH, year)
    begin, end = (np.maximum(bars - back, 0) for back in (_bars(1, year), month))
    rose = close[end] > close[begin]
    return Schedule(rose * _equal(close, span), np.arange(span.bars) % month == 0)


RULES: dict[str, Rule] = {
    "buy & hold": hold,
    "cash": cash,
    "volatility 10 %": steady,
    "momentum 12-1": momentum,
}


def elsewhere(
    positions: np.ndarray, turnover: np.ndarray, random: np.random.Generator
) -> Schedule:
    """Moves an agent's own positions to other times and assets; as much is traded.

    Args:
        positions: Its positions once the orders of each bar were filled, `[bars, A]`.
        turnover: Turnover of its trades then, `[bars]`.
        random: Draws the move in time, around the end, and the order of assets.
    """
    bars, assets = positions.shape
    shift, order = random.integers(1, max(bars, 2)), random.permutation(assets)
    moved = np.roll(positions, shift, axis=0)[:, order]
    trades = np.roll(turnover > 0, shift)
    trades[0] = True  # Nothing is held yet.
    return Schedule(moved, trades)


def play(markets: list[Trading], first: int, schedules: list[Schedule]) -> Track:
    """Plays schedules of one length from a bar on; returns tracks `[schedules, bars]`.

    Args:
        markets: Environments that set costs, interest and leverage, one per schedule;
            their prices are the same.
        first: The bar of the first decision.
        schedules: The schedules.
    """
    positions = np.stack([each.positions for each in schedules])
    total = np.abs(positions).sum(axis=-1, keepdims=True)
    leverage = np.array([env.leverage for env in markets])[:, None, None]
    share = np.minimum(1.0, leverage / np.maximum(total, 1e-12))
    trades = np.stack([each.trades for each in schedules])
    asked = [(env.cost, env.borrow, env.leverage) for env in markets]
    broker = Broker(*np.array(asked).T)
    tape = tape_of(markets[0].prices, markets[0].features)
    play = jax.jit(jax.vmap(lambda *given: _played(tape, first, *given)))
    track = play(*jax.tree.map(jnp.float32, (positions * share, trades, broker)))
    return Track(*map(np.asarray, track))


def _played(
    tape: Tape, first: int, positions: Array, trades: Array, broker: Broker
) -> Track:
    bars, assets = positions.shape

    def step(before, decided):
        (account, waiting), (target, wanted) = before, decided
        market = tape.after(account.bar)
        waiting |= wanted > 0
        now, waiting = market.tradable & waiting, waiting & ~market.tradable
        market = market._replace(tradable=now)
        after = settled(account, target, market, broker)
        growth = jnp.log(jnp.maximum(after.equity / account.equity, RUIN))
        track = Track(growth, after.turnover, jnp.abs(after.positions).sum())
        ruined = account.equity <= RUIN
        after = jax.tree.map(lambda x, y: jnp.where(ruined, x, y), account, after)
        track = jax.tree.map(lambda x: jnp.where(ruined, 0.0, x), track)
        return (after, waiting), track

    account = opened(jnp.int32(first), jnp.int32(first + bars), assets)
    begin = account, jnp.zeros(assets, bool)
    return jax.lax.scan(step, begin, (positions, trades))[1]


def _bars(share: float, year: float) -> int:
    """Returns the number of bars in a share of a year."""
    return max(1, round(share * year))


def _equal(close: np.ndarray, span: Span) -> np.ndarray:
    return np.full((span.bars, close.shape[1]), 1 / close.shape[1])

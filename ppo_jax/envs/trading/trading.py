"""Trading at past prices: actions decide at a close, and the next open fills orders."""

import functools
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from ppo_jax.component import component, concrete, numbers, require, require_field
from ppo_jax.component.bounds import Count, FiniteNonNegative, FinitePositive, Whole
from ppo_jax.envs.env import (
    ActionSpace,
    Box,
    Discrete,
    Env,
    MultiDiscrete,
    Step,
    outcome,
    strong,
)
from ppo_jax.envs.trading.account import Account, Broker, Market, opened, settled
from ppo_jax.envs.trading.causality import require_causal
from ppo_jax.envs.trading.features import Features
from ppo_jax.envs.trading.prices import Prices
from ppo_jax.types import Array, Key, PyTree

RUIN = 0.01
"""Equity at which a trader is bankrupt, from 1 at the start."""


@component
class Trading(Env):
    """Trades assets: actions decide at every close which shares of equity they hold.

    An action has a number a in [−1, 1] per asset. At the close of bar t it asks for
    positions of `leverage` · a / max(1, Σ|a|) of equity, which are taken at the next
    open, or at the next close if only closes are known: then their gains and losses are
    in the reward of the step after. The reward is the logarithm of the equity at the
    close of t + 1 over that of t, after costs and interest: rewards add up to the log
    growth of an episode. `Timestep.cost` is the costs and interest of a step as a share
    of equity, `weight` 0 where no order could be filled.

    Observations at the close of t are the `features` of each asset, and the positions.
    An episode begins with cash; it ends when equity is 1 % of that or less, and is cut
    off at its last bar. Its state is an `Account`.

    Attributes:
        prices: Prices of the assets to trade, any `Prices`.
        cost: Costs of trading, in basis points of the traded amount.
        borrow: Interest per year on shares that are sold short, and on loans of cash.
        leverage: Largest sum of the sizes of all positions, long and short alike, when
            orders are filled.
        first: The first bar at whose close an action may decide; None: the first with
            features. Features may look back beyond it.
        last: The bar before which episodes are over; None: they may use all bars. So
            [first, last) is a fold, and folds are numbers.
        window: Steps of an episode, which begins at a random bar; None: an episode has
            all bars of [first, last).
        positions: Choices of a for each asset, in [−1, 1]; None: any number.
        features: Features of prices that are observed.

    Raises:
        ValueError: At construction, if there are too few bars, no window fits into
            [first, last), a choice is out of range, or a feature is not finite or
            depends on later prices.

    >>> from ppo_jax.envs.trading.prices import RandomWalk
    >>> env = Trading(RandomWalk(num_bars=200), positions=(-1, 0, 1), window=20)
    >>> obs, account = env.reset(jax.random.key(0))
    >>> step, account = env.step(jax.random.key(1), account, jnp.array(2))
    >>> obs.shape, account.positions.round(2).tolist()
    ((7,), [1.0])
    """

    prices: Prices
    cost: FiniteNonNegative[float] = 10.0
    borrow: FiniteNonNegative[float] = 0.03
    leverage: FinitePositive[float] = 1.0
    first: Whole[float | None] = None
    last: Whole[float | None] = None
    window: Count | None = 252
    positions: tuple[float, ...] | None = None
    features: Features = Features()

    def validate(self) -> None:
        """Raises a `ValueError` for values that do not fit together."""
        name, value = "Trading.features", self.features
        require(not numbers(value), name, value, "fields that are no floats")
        choices = (0.0, 1.0) if self.positions is None else self.positions
        ok = not all(map(concrete, choices)) or self._are_choices(choices)
        require_field(self, "positions", ok, "distinct numbers in [-1, 1], at least 2")
        bars, least = len(self._tape.close), self.features.lookback
        steps = self.window or 1
        enough = f"more than {least + steps} bars: features look back for {least}"
        given = f"{bars} of {self.prices!r:.80}"
        require(bars > least + steps, "Trading.prices", given, enough)
        first = least if self.first is None else self.first
        last = bars if self.last is None else self.last
        if concrete(first) and concrete(last):
            latest = f"{least} to {bars - 1 - steps}, from where features are known"
            require_field(self, "first", least <= first < bars - steps, latest)
            expected = f"first + {steps + 1} = {first + steps + 1:g} to {bars} bars"
            require_field(self, "last", first + steps < last <= bars, expected)

    @property
    def action_space(self) -> ActionSpace:
        assets = len(self.prices.bars.symbols)
        if self.positions is None:
            return Box((-1.0,) * assets, (1.0,) * assets)
        count = len(self.positions)
        return Discrete(count) if assets == 1 else MultiDiscrete((count,) * assets)

    @property
    def min_steps_to_truncation(self) -> int:
        return self.window or 1

    @property
    def max_episode_steps(self) -> int | None:
        return self.window or len(self._tape.close) - 1 - self.features.lookback

    @property
    def acts_late(self) -> bool:
        return self.prices.bars.open is None

    def reset(self, key: Key) -> tuple[PyTree, PyTree]:
        bars, assets = self._tape.close.shape
        first = self.features.lookback if self.first is None else self.first
        last = bars if self.last is None else self.last
        begin, final = (jnp.asarray(x, jnp.int32) for x in (first, last - 1))
        end = final
        if self.window is not None:
            begin = jax.random.randint(key, (), begin, final - self.window + 1)
            end = begin + self.window
        account = strong(opened(begin, end, assets))
        return self._seen(account), account

    def transition(self, key: Key, state: PyTree, action: Array) -> Step:
        market = self._tape.after(state.bar)
        broker = Broker(self.cost, self.borrow, self.leverage)
        account = settled(state, self.target(action), market, broker)
        timestep = outcome(
            obs=self._seen(account),
            reward=jnp.log(jnp.maximum(account.equity / state.equity, RUIN)),
            terminated=account.equity <= RUIN,
            truncated=account.bar >= state.end,
            weight=market.tradable.any(),
            cost=account.paid,
        )
        return timestep, strong(account)

    def target(self, action: Array) -> Array:
        """Returns the positions that an action asks for, as shares of equity `[A]`."""
        if self.positions is not None:
            action = jnp.asarray(self.positions)[action]
        action = jnp.clip(jnp.reshape(action, -1), -1.0, 1.0)
        return self.leverage * action / jnp.maximum(jnp.abs(action).sum(), 1.0)

    @property
    def _tape(self) -> "Tape":
        return tape(self.prices, self.features)

    def _seen(self, account: Account) -> Array:
        """Returns features at the close of the bar, asset by asset, then positions."""
        features = jnp.asarray(self._tape.features)[account.bar]
        return jnp.concatenate([features, account.positions])

    @staticmethod
    def _are_choices(values: tuple[float, ...]) -> bool:
        distinct = 1 < len(values) == len(set(values))
        return distinct and all(-1 <= x <= 1 for x in values)


class Tape(NamedTuple):
    """Arrays of prices for devices, float32; in a program they are constants."""

    close: np.ndarray
    fill: np.ndarray
    tradable: np.ndarray
    years: np.ndarray
    features: np.ndarray
    """Features `[N, A · F]`, asset by asset."""

    def after(self, bar: Array) -> Market:
        """Returns the market from the close of a bar to the next close."""
        return Market(
            before=jnp.asarray(self.close)[bar],
            fill=jnp.asarray(self.fill)[bar + 1],
            close=jnp.asarray(self.close)[bar + 1],
            tradable=jnp.asarray(self.tradable)[bar + 1],
            years=jnp.asarray(self.years)[bar + 1],
        )


@functools.cache
def tape(prices: Prices, features: Features) -> Tape:
    """Returns prices and their features, computed once in float64.

    Raises:
        ValueError: If features are not finite, or depend on later prices.
    """
    bars = prices.bars
    seen = require_causal(features, bars).reshape(len(bars.times), -1)
    return Tape(
        close=bars.close.astype(np.float32),
        fill=bars.fill.astype(np.float32),
        tradable=bars.tradable,
        years=bars.years.astype(np.float32),
        features=seen.astype(np.float32),
    )

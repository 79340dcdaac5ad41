"""Tracks of a walk-forward, joined over its folds, beside those of baselines."""

import math
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from ppo_jax.backtests import baselines
from ppo_jax.backtests.plan import Plan, market_of
from ppo_jax.backtests.playing import Track
from ppo_jax.backtests.walking import Tracks
from ppo_jax.envs.trading import Trading
from ppo_jax.sweeps import settings

RANDOM = "its trades elsewhere"
"""Name of the baseline that trades as much as an agent."""


class Account(NamedTuple):
    """Earnings of agents or a baseline over all tests in a row, `[tracks, bars]`."""

    name: str
    cost: float
    """The cost of trades, in basis points of their value."""
    market: dict[str, float]
    """Other numbers of the market, where they are not those of the experiment."""
    returns: np.ndarray
    turnover: np.ndarray
    exposure: np.ndarray

    @property
    def conditions(self) -> str:
        """The market of the account, in words."""
        return conditions(self.cost, self.market)


class Agents(NamedTuple):
    """The agents of a setting: an account with a track per seed, and its origin."""

    account: Account
    control: Account
    """The account of their trades at other times and in other assets."""
    trained: np.ndarray
    """Log growth per bar in training, `[seeds, folds]`."""
    validated: np.ndarray
    """Log growth per bar in validation, `[seeds, folds]`."""
    updates: np.ndarray
    """Updates after which agents were selected, `[seeds, folds]`."""
    failed: np.ndarray
    """Whether training ended early, without a finite step for too long."""
    predicted: np.ndarray
    """Quantiles of the return to come, `[seeds, folds, bars, levels]`."""
    gamma: float
    """The discount; NaN if agents differ in it."""


class Results(NamedTuple):
    """The results of a walk-forward."""

    plan: Plan
    agents: list[Agents]
    baselines: list[Account]
    """Accounts of the baselines, in every market that agents were in."""

    @property
    def times(self) -> np.ndarray:
        """The time when each return of a test was known, `[bars]`."""
        whole = self.plan.whole
        times = self.plan.market.prices.bars.times
        return times[whole.first + 1 : whole.last + 1]

    @property
    def year(self) -> float:
        """The number of bars of a year."""
        return self.plan.market.prices.bars.of_a_year

    def beside(self, agents: Agents) -> list[Account]:
        """Returns the baselines in the market of some agents."""
        ours = agents.account.cost, agents.account.market
        return [each for each in self.baselines if (each.cost, each.market) == ours]


def conditions(cost: float, market: Mapping[str, float]) -> str:
    """Describes a market: the cost of trades, and other numbers of its own.

    >>> conditions(5.0, {}), conditions(20.0, {"leverage": 0.5})
    ('5 bp', '20 bp, leverage 0.5')
    """
    others = [f"{name} {value:g}" for name, value in market.items()]
    return ", ".join([f"{cost:g} bp", *others])


def join(plan: Plan, pieces: Sequence[Tracks]) -> Results:
    """Joins the tracks of all batches into results; none may be missing."""
    whole = Tracks(*(np.concatenate(leaves) for leaves in zip(*pieces, strict=True)))
    order = np.lexsort(whole.place.T[[1, 2, 0]])
    shape = len(plan.settings), plan.seeds, len(plan.folds)
    tracks = Tracks(*(leaf[order].reshape(*shape, *leaf.shape[1:]) for leaf in whole))
    agents = [
        _agents(plan, number, Tracks(*(leaf[number] for leaf in tracks)))
        for number in range(len(plan.settings))
    ]
    return Results(plan, agents, _baselines(plan))


def _agents(plan: Plan, number: int, tracks: Tracks) -> Agents:
    """Returns the agents of a setting; leaves of `tracks` are `[seeds, folds, ...]`."""
    setting = plan.settings[number]
    config = settings.apply(plan.config, setting)
    market, name = market_of(config), settings.label(setting)
    searched = config.pbt is not None and "gamma" in config.pbt.space.paths
    joined = [_in_a_row(leaf) for leaf in tracks[1:5]]
    *track, positions = joined
    return Agents(
        _account(name, plan, market, Track(*track)),
        _control(plan, market, positions, track[1]),
        tracks.trained,
        tracks.validated,
        tracks.updates,
        tracks.failed,
        tracks.predicted,
        math.nan if searched else float(config.gamma),
    )


def _control(
    plan: Plan, market: Trading, positions: np.ndarray, turnover: np.ndarray
) -> Account:
    random = np.random.default_rng(plan.config.seed)
    schedules = [
        baselines.elsewhere(*each, random)
        for each in zip(positions, turnover, strict=True)
    ]
    markets = [market] * len(schedules)
    track = baselines.play(markets, plan.whole.first, schedules)
    return _account(RANDOM, plan, market, track)


def _baselines(plan: Plan) -> list[Account]:
    bars, whole = plan.market.prices.bars, plan.whole
    given = bars.close, whole, bars.of_a_year
    schedules = {name: rule(*given) for name, rule in baselines.RULES.items()}
    pairs = [(name, market) for market in _markets(plan) for name in schedules]
    track = baselines.play(
        [market for _, market in pairs],
        whole.first,
        [schedules[name] for name, _ in pairs],
    )
    return [
        _account(name, plan, market, Track(*(leaf[i : i + 1] for leaf in track)))
        for i, (name, market) in enumerate(pairs)
    ]


def _markets(plan: Plan) -> list[Trading]:
    """Returns the markets of all settings; those with the same numbers once."""
    every = (market_of(settings.apply(plan.config, each)) for each in plan.settings)
    return list({(env.cost, *_others(env).items()): env for env in every}.values())


def _others(env: Trading) -> dict[str, float]:
    """Returns the numbers of a market except the cost of trades."""
    return {"borrow": float(env.borrow), "leverage": float(env.leverage)}


def _account(name: str, plan: Plan, market: Trading, track: Track) -> Account:
    """Returns the account of a track in a market."""
    own, there = _others(plan.market), _others(market)
    others = {name: there[name] for name in own if there[name] != own[name]}
    growth, turnover, exposure = (np.asarray(leaf, np.float64) for leaf in track)
    return Account(
        name, float(market.cost), others, np.expm1(growth), turnover, exposure
    )


def _in_a_row(leaf: np.ndarray) -> np.ndarray:
    """Joins bars of all folds, `[seeds, folds, bars, ...]` to `[seeds, all, ...]`."""
    return leaf.reshape(len(leaf), -1, *leaf.shape[3:])

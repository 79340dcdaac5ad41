"""Tracks of a walk-forward, joined over its folds, beside what needs no learning."""

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
"""What the baseline is called that trades as much as an agent."""


class Account(NamedTuple):
    """What somebody earned over all tests, one after the other, `[tracks, bars]`."""

    name: str
    cost: float
    """Of what was traded, in basis points."""
    market: dict[str, float]
    """Its other numbers, where they are not those of the experiment."""
    returns: np.ndarray
    turnover: np.ndarray
    exposure: np.ndarray

    @property
    def conditions(self) -> str:
        """Its market in words."""
        return conditions(self.cost, self.market)


class Agents(NamedTuple):
    """The agents of a setting: an account with a track per seed, and how it came."""

    account: Account
    control: Account
    """What would have become of their trades elsewhere."""
    trained: np.ndarray
    """Log growth a bar where it was learned, `[seeds, folds]`."""
    validated: np.ndarray
    """Where it was selected."""
    updates: np.ndarray
    """After how many updates."""
    failed: np.ndarray
    """Whether training ended early, without a finite step for too long."""
    predicted: np.ndarray
    """Of the return to come, `[seeds, folds, bars, levels]`."""
    gamma: float
    """NaN: each has another one."""


class Results(NamedTuple):
    """What a walk-forward has come to."""

    plan: Plan
    agents: list[Agents]
    baselines: list[Account]
    """In every market that agents were in."""

    @property
    def times(self) -> np.ndarray:
        """When each return of a test was known, `[bars]`."""
        whole = self.plan.whole
        times = self.plan.market.prices.bars.times
        return times[whole.first + 1 : whole.last + 1]

    @property
    def year(self) -> float:
        """Bars of a year."""
        return self.plan.market.prices.bars.of_a_year

    def beside(self, agents: Agents) -> list[Account]:
        """The baselines in the market of some agents."""
        ours = agents.account.cost, agents.account.market
        return [each for each in self.baselines if (each.cost, each.market) == ours]


def conditions(cost: float, market: Mapping[str, float]) -> str:
    """A market in words: what trades cost, and other numbers of its own.

    >>> conditions(5.0, {}), conditions(20.0, {"leverage": 0.5})
    ('5 bp', '20 bp, leverage 0.5')
    """
    others = [f"{name} {value:g}" for name, value in market.items()]
    return ", ".join([f"{cost:g} bp", *others])


def join(plan: Plan, pieces: Sequence[Tracks]) -> Results:
    """Puts together what batches have come to; all of them are there."""
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
    """The agents of a setting; leaves of `tracks` are `[seeds, folds, ...]`."""
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
    """Where agents trade; those whose numbers are the same once."""
    every = (market_of(settings.apply(plan.config, each)) for each in plan.settings)
    return list({(env.cost, *_others(env).items()): env for env in every}.values())


def _others(env: Trading) -> dict[str, float]:
    """The numbers of a market but what trades cost."""
    return {"borrow": float(env.borrow), "leverage": float(env.leverage)}


def _account(name: str, plan: Plan, market: Trading, track: Track) -> Account:
    """What somebody earned in a market."""
    own, there = _others(plan.market), _others(market)
    others = {name: there[name] for name in own if there[name] != own[name]}
    growth, turnover, exposure = (np.asarray(leaf, np.float64) for leaf in track)
    return Account(
        name, float(market.cost), others, np.expm1(growth), turnover, exposure
    )


def _in_a_row(leaf: np.ndarray) -> np.ndarray:
    """The bars of all folds, `[seeds, folds, bars, ...]` to `[seeds, all, ...]`."""
    return leaf.reshape(len(leaf), -1, *leaf.shape[3:])

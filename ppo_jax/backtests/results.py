"""Tracks of a walk-forward, joined over its folds, beside what needs no learning."""

import math
from collections.abc import Sequence
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
    returns: np.ndarray
    turnover: np.ndarray
    exposure: np.ndarray


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
    """At every cost that agents have paid."""

    @property
    def times(self) -> np.ndarray:
        """When each return of a test was known, `[bars]`."""
        whole = self.plan.whole
        times = self.plan.market.prices.bars.times
        return times[whole.first + 1 : whole.last + 1]

    def beside(self, agents: Agents) -> list[Account]:
        """The baselines that paid what some agents paid."""
        return [each for each in self.baselines if each.cost == agents.account.cost]


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
    costs = list(dict.fromkeys(each.account.cost for each in agents))
    return Results(plan, agents, _baselines(plan, costs))


def _agents(plan: Plan, number: int, tracks: Tracks) -> Agents:
    """The agents of a setting; leaves of `tracks` are `[seeds, folds, ...]`."""
    setting = plan.settings[number]
    config = settings.apply(plan.config, setting)
    market, name = market_of(config), settings.label(setting)
    cost = float(market.cost)
    searched = config.pbt is not None and "gamma" in config.pbt.space.paths
    joined = [_in_a_row(leaf) for leaf in tracks[1:5]]
    *track, positions = joined
    return Agents(
        _account(name, cost, Track(*track)),
        _control(market, plan, positions, track[1]),
        tracks.trained,
        tracks.validated,
        tracks.updates,
        tracks.failed,
        tracks.predicted,
        math.nan if searched else float(config.gamma),
    )


def _control(
    market: Trading, plan: Plan, positions: np.ndarray, turnover: np.ndarray
) -> Account:
    random = np.random.default_rng(plan.config.seed)
    schedules = [
        baselines.elsewhere(*each, random)
        for each in zip(positions, turnover, strict=True)
    ]
    cost = float(market.cost)
    costs = [cost] * len(schedules)
    track = baselines.play(market, plan.whole.first, schedules, costs)
    return _account(RANDOM, cost, track)


def _baselines(plan: Plan, costs: list[float]) -> list[Account]:
    env, whole = plan.market, plan.whole
    close = env.prices.bars.close
    schedules = {name: rule(close, whole) for name, rule in baselines.RULES.items()}
    pairs = [(name, cost) for cost in costs for name in schedules]
    track = baselines.play(
        env,
        whole.first,
        [schedules[name] for name, _ in pairs],
        [cost for _, cost in pairs],
    )
    return [
        _account(name, cost, Track(*(leaf[i : i + 1] for leaf in track)))
        for i, (name, cost) in enumerate(pairs)
    ]


def _account(name: str, cost: float, track: Track) -> Account:
    growth, turnover, exposure = (np.asarray(leaf, np.float64) for leaf in track)
    return Account(name, cost, np.expm1(growth), turnover, exposure)


def _in_a_row(leaf: np.ndarray) -> np.ndarray:
    """The bars of all folds, `[seeds, folds, bars, ...]` to `[seeds, all, ...]`."""
    return leaf.reshape(len(leaf), -1, *leaf.shape[3:])

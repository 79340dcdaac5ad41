"""Accounts in numbers: measures, intervals, and how much may be luck."""

import functools
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np

from ppo_jax.backtests import bootstrap, deflation, measures
from ppo_jax.backtests.playing import LEVELS
from ppo_jax.backtests.results import Account, Agents, Results
from ppo_jax.envs.trading import RUIN

Measure = Callable[..., np.ndarray]
MEASURES: Mapping[str, Measure] = {
    "CAGR": lambda year, returns, *_: measures.cagr(returns, year),
    "volatility": lambda year, returns, *_: measures.volatility(returns, year),
    "Sharpe": lambda year, returns, *_: measures.sharpe(returns, year),
    "Sortino": lambda year, returns, *_: measures.sortino(returns, year),
    "Calmar": lambda year, returns, *_: measures.calmar(returns, year),
    "max drawdown": lambda _, returns, *__: measures.max_drawdown(returns),
    "longest drawdown": lambda _, returns, *__: measures.drawdown_bars(returns),
    "VaR 5 %": lambda _, returns, *__: measures.var(returns),
    "CVaR 5 %": lambda _, returns, *__: measures.cvar(returns),
    "hit rate": lambda _, returns, *__: measures.hit_rate(returns),
    "turnover": lambda year, _, turnover, __: measures.yearly(turnover, year),
    "exposure": lambda *given: given[-1].mean(axis=-1),
}
"""Functions of the bars of a year, and of returns, turnover, exposure `[..., bars]`."""
SURE = ("CAGR", "Sharpe", "max drawdown", "CVaR 5 %")
"""Measures that are given with an interval."""
SHARES = {*SURE, "volatility", "VaR 5 %", "hit rate", "exposure"} - {"Sharpe"}
"""Measures that are read more easily as percentages."""
SHARPE, MARKET = "Sharpe", "buy & hold"
FADED = 0.05
"""A return to come is known once the rest of it weighs no more than this."""


class Figure(NamedTuple):
    """A measure of tracks."""

    each: list[float]
    """The measure of every track."""
    interval: tuple[float, float] | None
    """Bootstrap interval of the measure of one track; None: not in `SURE`."""

    @property
    def median(self) -> float:
        """The median over the tracks of which the measure is known."""
        return measures.median(self.each)


class Summary(NamedTuple):
    """The measures of an account."""

    name: str
    cost: float
    figures: dict[str, Figure]


class Luck(NamedTuple):
    """Comparison of agents with luck, the market, and their own trades elsewhere."""

    deflated: list[float]
    """Probability that the Sharpe ratio of each is above 0, after all trials."""
    over_market: tuple[float, float]
    """Interval of their Sharpe ratio less that of buying and holding."""
    over_control: tuple[float, float]
    """Interval of their Sharpe ratio less that of their own trades elsewhere."""
    even_cash: list[float]
    """Cost in bp at which each earns no more than cash."""
    even_market: list[float]
    """Cost in bp at which each earns no more than buying and holding."""


def of(account: Account, year: float) -> Summary:
    """Returns the measures of an account, given the bars of a year."""
    series = account.returns, account.turnover, account.exposure
    figures = {}
    for name, whole in MEASURES.items():
        measure = functools.partial(whole, year)
        figures[name] = Figure(
            np.asarray(measure(*series), float).tolist(),
            bootstrap.interval(measure, *series) if name in SURE else None,
        )
    return Summary(account.name, account.cost, figures)


def luck(results: Results, agents: Agents) -> Luck:
    """Compares agents with luck, the market, and their own trades elsewhere."""
    account, ours = agents.account, agents.account.returns
    (market,) = [x for x in results.beside(agents) if x.name == MARKET]
    theirs = np.broadcast_to(market.returns, ours.shape)
    trials, before = ratios(results), results.plan.before
    paid = ours, account.turnover, account.cost
    gap = functools.partial(_gap, results.year)
    return Luck(
        [deflation.deflated(track, trials, before) for track in ours],
        bootstrap.interval(gap, ours, theirs),
        bootstrap.interval(gap, ours, agents.control.returns),
        measures.break_even(*paid).tolist(),
        measures.break_even(*paid, theirs).tolist(),
    )


def ratios(results: Results) -> np.ndarray:
    """Returns Sharpe ratios per bar of all agents that were tested here, `[N]`."""
    here = [measures.sharpe(each.account.returns, bars=1) for each in results.agents]
    return np.concatenate(here)


def coverage(agents: Agents) -> np.ndarray | None:
    """Returns the share of returns to come below each predicted quantile, `[levels]`.

    It is `LEVELS`, if predictions are right. A return to come is discounted, and known
    where its fold goes on for so long that the rest weighs little; a bankrupt account
    has none. None: it is known nowhere, only a mean is predicted, or agents discount
    differently.
    """
    seeds, folds, bars, _ = agents.predicted.shape
    if np.isnan(agents.gamma):
        return None
    missing = agents.gamma ** np.arange(bars, 0, -1)  # From each bar on.
    known = int(np.sum(missing <= FADED))
    if known < 1 or not np.isfinite(agents.predicted).all():
        return None
    growth = np.log1p(agents.account.returns).reshape(seeds, folds, bars)
    to_come = np.zeros_like(growth)
    rest = np.zeros((seeds, folds))
    for bar in reversed(range(bars)):
        rest = to_come[..., bar] = growth[..., bar] + agents.gamma * rest
    below = to_come[..., :known, None] < agents.predicted[..., :known, :]
    return below[_solvent(agents)[..., :known]].mean(axis=0)


def ruined(agents: Agents) -> np.ndarray:
    """Returns whether an account went bankrupt in a test, bool `[seeds, folds]`."""
    return _equity(agents)[..., -1] <= RUIN


def _solvent(agents: Agents) -> np.ndarray:
    """Returns whether a bar began with a solvent account, `[seeds, folds, bars]`."""
    equity = _equity(agents)
    begun = np.concatenate([np.ones_like(equity[..., :1]), equity[..., :-1]], axis=-1)
    return begun > RUIN


def _equity(agents: Agents) -> np.ndarray:
    """Returns equity over the bars of each test, from 1 on, `[seeds, folds, bars]`.

    A loss of 99 % of a bar is one of all, as larger ones are not told from it. Equity
    is rounded, so that who ends at the limit of a bankrupt account is one.
    """
    growth = 1 + agents.account.returns.reshape(agents.predicted.shape[:3])
    kept = np.where(growth.round(6) > RUIN, growth, 0.0)
    return np.cumprod(kept, axis=-1).round(6)


def as_json(results: Results) -> dict[str, Any]:
    """Returns all results as plain data."""
    plan, times = results.plan, results.plan.market.prices.bars.times

    def days(span):
        return [str(times[bar])[:10] for bar in (span.first, span.last)]

    return {
        "bars": plan.whole.bars,
        "year": results.year,
        "trials": plan.trials,
        "before": plan.before,
        "measures": [*MEASURES],
        "levels": [*LEVELS],
        "folds": [
            {name: days(span) for name, span in fold._asdict().items()}
            for fold in plan.folds
        ],
        "agents": [_agents_as_json(results, each) for each in results.agents],
        "baselines": [_account_as_json(results, each) for each in results.baselines],
    }


def notes(numbers: dict[str, Any]) -> list[str]:
    """Returns notes on agents whose training failed, and on those that went bankrupt.

    >>> notes({"agents": [{"failed": [[False]], "ruined": [[True]]}]})
    ['1 of 1 tests ended early, with 1 % of the equity or less. Losses beyond 99 % of \
a bar are left out.']
    """
    failed, bankrupt = (
        np.concatenate([np.ravel(agents[name]) for agents in numbers["agents"]])
        for name in ("failed", "ruined")
    )
    found = []
    if failed.any():
        found.append(
            f"The training of {failed.sum()} of {failed.size} agents failed: no step "
            "was finite any more. They are what they were at their best before."
        )
    if bankrupt.any():
        found.append(
            f"{bankrupt.sum()} of {bankrupt.size} tests ended early, with "
            f"{100 * RUIN:g} % of the equity or less. Losses beyond "
            f"{100 - 100 * RUIN:g} % of a bar are left out."
        )
    return found


def _agents_as_json(results: Results, agents: Agents) -> dict[str, Any]:
    covered = coverage(agents)
    return (
        _account_as_json(results, agents.account)
        | luck(results, agents)._asdict()
        | {
            "control": _account_as_json(results, agents.control),
            "covered": None if covered is None else covered.tolist(),
            "trained": agents.trained.tolist(),
            "validated": agents.validated.tolist(),
            "updates": agents.updates.tolist(),
            "failed": agents.failed.tolist(),
            "ruined": ruined(agents).tolist(),
        }
    )


def _account_as_json(results: Results, account: Account) -> dict[str, Any]:
    summary = of(account, results.year)
    figures = {
        name: figure._asdict() | {"median": figure.median}
        for name, figure in summary.figures.items()
    }
    about = {"name": account.name, "cost": account.cost, "market": account.market}
    return about | {"figures": figures}


def _gap(year: float, ours: np.ndarray, theirs: np.ndarray) -> np.ndarray:
    return measures.sharpe(ours, year) - measures.sharpe(theirs, year)

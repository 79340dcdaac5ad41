"""Equity and drawdowns over time, of agents and baselines."""

import numpy as np

from ppo_jax.backtests import measures
from ppo_jax.backtests.results import Agents, Results
from ppo_jax.reports.charts import TONES, Band, Chart, Curve, Mark, Threads
from ppo_jax.reports.sections import Grid, Section

FEW = 3
"""Number of settings that have charts of their own; the table has all."""
YEAR = np.timedelta64(365 * 24 + 6, "h")


def section(results: Results) -> Section:
    """Returns the charts of the first settings."""
    charts = [
        chart
        for agents in results.agents[:FEW]
        for chart in (_equity(results, agents), _drawdowns(results, agents))
    ]
    return Section("Curves", [Grid(charts)])


def years(times: np.ndarray) -> np.ndarray:
    """Converts times to years.

    >>> years(np.array(["2000-07-02"], "datetime64[ns]")).round(1).tolist()
    [2000.5]
    """
    return 1970 + (times - np.datetime64("1970-01-01", "ns")) / YEAR


def _equity(results: Results, agents: Agents) -> Chart:
    at = years(results.times)
    each = measures.equity(agents.account.returns)[:, 1:]
    marks = [*_spread(at, each), *_baselines(results, agents, _account)]
    text = f"{agents.account.name}: what 1 became, after {agents.account.conditions}."
    return Chart("Equity", marks, "year", text=text, log=True)


def _drawdowns(results: Results, agents: Agents) -> Chart:
    at = years(results.times)
    each = -measures.drawdowns(agents.account.returns)[:, 1:]
    marks = [*_spread(at, each), *_baselines(results, agents, _loss)]
    text = f"{agents.account.name}: share of the highest equity so far that was lost."
    return Chart("Drawdown", marks, "year", text=text, log=False)


def _spread(at: np.ndarray, each: np.ndarray) -> list[Mark]:
    """Returns the median of tracks, their quartiles, and each of them."""
    median = Curve("agents, the median seed", at, np.median(each, axis=0), TONES[0])
    if len(each) == 1:
        return [median._replace(name="the agent")]
    low, high = np.quantile(each, [0.25, 0.75], axis=0)
    threads = Threads("each seed", [(at, track) for track in each])
    return [threads, Band("quartiles", at, low, high, TONES[0]), median]


def _baselines(results: Results, agents: Agents, shown) -> list[Mark]:
    at = years(results.times)
    there = [each for each in results.beside(agents) if each.exposure.any()]
    return [
        Curve(each.name, at, shown(each.returns[0]), tone)
        for each, tone in zip(there, TONES[1:], strict=False)
    ]


def _account(returns: np.ndarray) -> np.ndarray:
    return measures.equity(returns)[1:]


def _loss(returns: np.ndarray) -> np.ndarray:
    return -measures.drawdowns(returns)[1:]

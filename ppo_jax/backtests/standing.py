"""Sections of the page that are tables, estimates and frontiers, made of plain data."""

from typing import Any

import numpy as np

from ppo_jax.backtests import measures
from ppo_jax.backtests.bootstrap import BLOCK
from ppo_jax.backtests.results import Results, conditions
from ppo_jax.backtests.summary import LEVELS, MARKET, SHARES, SHARPE
from ppo_jax.reports.charts import TONES, Chart, Curve, Mark, Points
from ppo_jax.reports.elements import element, table
from ppo_jax.reports.scales import written
from ppo_jax.reports.sections import Fold, Grid, Section
from ppo_jax.reports.strips import Estimate, forest, pair

Numbers = dict[str, Any]
INTERVALS = (
    "The median over seeds. Intervals are 95 %, of one agent: a seed drawn at random, "
    f"and bars drawn anew in blocks of {BLOCK:g} on average (stationary bootstrap)."
)
DEFLATED = (
    "How likely the true Sharpe ratio of an agent is above 0, after as many trials as "
    "there were: the deflated Sharpe ratio of Bailey and López de Prado, 2014. At a "
    "cost that breaks even, in basis points of what is traded, the mean return is that "
    "of cash, or of who buys and holds."
)


def section(numbers: Numbers) -> Section:
    """Returns the earnings and risks of all agents and baselines."""
    names = numbers["measures"]
    units = [f"{name}, %" if name in SHARES else name for name in names]
    header = ("who", "cost", *units)
    rows = [
        (each["name"], _paid(each), *(_cell(each, name) for name in names))
        for each in [*numbers["agents"], *numbers["baselines"]]
    ]
    parts = [element("p", INTERVALS), table(header, rows)]
    estimates = [
        Estimate(_called(each), each["figures"][SHARPE]["median"], _interval(each))
        for each in [*numbers["agents"], *numbers["baselines"]]
    ]
    ends = [
        end for each in estimates for end in each.interval or () if np.isfinite(end)
    ]
    if ends:
        heading = element("h3", "Sharpe ratio")
        parts += [heading, forest(estimates, min(0.0, *ends), max(ends), middle=0.0)]
    return Section("Measures", parts)


def luck(numbers: Numbers) -> Section:
    """Returns how much of the agents' results may be luck."""
    header = (
        *("agents", "cost", "deflated Sharpe", "best seed's"),
        *(f"Sharpe over {MARKET}", "over its trades elsewhere"),
        *("breaks even with cash", f"with {MARKET}"),
    )
    rows = [
        (
            each["name"],
            _paid(each),
            written(measures.median(each["deflated"])),
            written(_most(each["deflated"])),
            pair(each["over_market"]),
            pair(each["over_control"]),
            f"{written(measures.median(each['even_cash']))} bp",
            f"{written(measures.median(each['even_market']))} bp",
        )
        for each in numbers["agents"]
    ]
    trials = (
        f"{numbers['trials']} trials, {numbers['before']} of them elsewhere. {DEFLATED}"
    )
    return Section("Luck", [element("p", trials), table(header, rows)])


def frontier(numbers: Numbers) -> Section:
    """Charts growth against risk, and Sharpe ratios over costs if they differ."""
    charts = [
        Chart(
            f"CAGR over {risk}",
            [
                _points("agents, each seed", numbers["agents"], risk, TONES[0]),
                _points("baselines", numbers["baselines"], risk, TONES[1]),
            ],
            risk,
            "a year",
            "To the upper left is better.",
            log=False,
        )
        for risk in ("max drawdown", "CVaR 5 %")
    ]
    if len({each["cost"] for each in numbers["agents"]}) > 1:
        charts.append(_over_costs(numbers))
    return Section("Frontier", [Grid(charts)])


def folds(results: Results, numbers: Numbers) -> Section:
    """Returns tables of each fold: its training, its validation and its test."""
    parts = [
        _fold_table(results, numbers, number)
        for number in range(len(numbers["agents"]))
    ]
    text = "CAGR, the median over seeds; updates are those of the checkpoints chosen."
    first, *rest = parts
    return Section("Folds", [element("p", text), first, *rest])


def calibration(numbers: Numbers) -> Section | None:
    """Charts the coverage of critics' predictions; None: no agent has one."""
    known = [each for each in numbers["agents"] if each["covered"] is not None]
    if not known:
        return None
    levels = np.array(LEVELS)
    marks: list[Mark] = [Curve("as predicted", levels, levels, TONES[1])]
    marks += [
        Curve(each["name"], levels, np.array(each["covered"]), tone, dots=True)
        for each, tone in zip(known, (TONES[0], *TONES[2:]), strict=False)
    ]
    text = "Share of returns to come that were below a quantile the critic predicted."
    chart = Chart("Coverage", marks, "quantile", text=text, log=False)
    rows = [(_called(each), *map(written, each["covered"])) for each in known]
    shown = table(("agents", *(f"{level:g}" for level in LEVELS)), rows)
    return Section("Calibration", [Grid([chart]), shown])


def _over_costs(numbers: Numbers) -> Chart:
    """Charts Sharpe ratios over costs, with a point per setting and cost."""
    marks = [
        Points(
            name,
            np.array([each["cost"] for each in group]),
            np.array([each["figures"][SHARPE]["median"] for each in group]),
            tone,
        )
        for name, group, tone in (
            ("agents, the median seed", numbers["agents"], TONES[0]),
            (
                MARKET,
                [each for each in numbers["baselines"] if each["name"] == MARKET],
                TONES[1],
            ),
        )
    ]
    return Chart("Sharpe ratio over costs", marks, "cost, bp", log=False)


def _fold_table(results: Results, numbers: Numbers, number: int) -> Fold:
    agents = results.agents[number]
    (market,) = [x for x in results.beside(agents) if x.name == MARKET]
    bars = results.plan.folds[0].test.bars
    rows = []
    for fold, days in enumerate(numbers["folds"]):
        here = slice(fold * bars, (fold + 1) * bars)
        grown = [
            _yearly(x[:, fold], results.year)
            for x in (agents.trained, agents.validated)
        ]
        tested = agents.account.returns[:, here]
        rows.append(
            (
                " – ".join(days["test"]),
                *map(written, grown),
                written(measures.median(measures.cagr(tested, results.year))),
                written(float(measures.cagr(market.returns[0, here], results.year))),
                written(measures.median(measures.sharpe(tested, results.year))),
                written(measures.median(measures.max_drawdown(tested))),
                written(measures.median(agents.updates[:, fold])),
            )
        )
    header = ("test", "train", "validation", "test", MARKET, SHARPE, "max drawdown")
    shown = table((*header, "updates"), rows)
    return Fold(_called(numbers["agents"][number]), [shown], open=number == 0)


def _yearly(growth: np.ndarray, year: float) -> float:
    """Returns the median growth of a year, given log growth per bar."""
    return measures.median(np.expm1(year * growth))


def _points(name: str, group: list[Numbers], risk: str, tone: str) -> Points:
    across, up = (
        np.array([x for each in group for x in each["figures"][name]["each"]])
        for name in (risk, "CAGR")
    )
    return Points(name, across, up, tone)


def _cell(each: Numbers, name: str) -> str:
    figure, unit = each["figures"][name], 100 if name in SHARES else 1
    text, ends = written(unit * figure["median"]), figure["interval"]
    if ends is None or not np.isfinite(ends).all():
        return text
    low, high = (written(unit * end, 3) for end in ends)
    return f"{text} ({low} to {high})"


def _interval(each: Numbers) -> tuple[float, float] | None:
    ends = each["figures"][SHARPE]["interval"]
    return ends if ends and np.isfinite(ends).all() else None


def _called(each: Numbers) -> str:
    return f"{each['name']}, {_paid(each)}"


def _paid(each: Numbers) -> str:
    return conditions(each["cost"], each["market"])


def _most(values: Any) -> float:
    return float(np.nanmax(values)) if np.isfinite(values).any() else float("nan")

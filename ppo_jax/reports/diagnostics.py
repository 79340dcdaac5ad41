"""Losses and diagnostics in the groups of the catalogue, with healthy ranges."""

import math
from collections.abc import Iterable

import numpy as np

from ppo_jax.host.metrics.alerts import ALERTS, Alert
from ppo_jax.host.metrics.catalogue import SECTIONS, row_of
from ppo_jax.metrics.reductions import Metric
from ppo_jax.metrics.rows import match
from ppo_jax.reports.charts import TONES, Chart, Curve, Mark, Threads
from ppo_jax.reports.elements import code, element, table
from ppo_jax.reports.learning import spread
from ppo_jax.reports.records import Record
from ppo_jax.reports.scales import written
from ppo_jax.reports.sections import Fold, Grid, Section

Groups = dict[str, dict[Metric, list[str]]]
"""Names of metrics by their row, and rows by their group."""
ELSEWHERE = (
    "q25/",
    "q75/",
    "best/",
    "each/",
    "pbt/",
    "warn/",
    "time/",
    "eval/",
    "step",
)
"""Prefixes of metrics that other parts of the page show."""
OWN = "Of the experiment"
MANY = "Lines are those of the median member, bands the quartiles of the members."
FIRST = ("Rollouts", "Policy", "Value", OWN)
"""Groups that are open at first."""


def section(run: Record) -> Section:
    """Returns charts of a run's metrics of updates, and tables of constant ones."""
    groups = grouped(name for name in run.names if not name.startswith(ELSEWHERE))
    folds = [_fold(run, title, rows) for title, rows in groups.items() if rows]
    note = element("p", MANY) if run.members > 1 else None
    return Section("Losses and diagnostics", [note, *folds])


def grouped(names: Iterable[str]) -> Groups:
    """Groups metrics as the catalogue does, by their rows.

    >>> found = grouped(["train/critic1_grad_norm", "mine/speed", "train/loss"])
    >>> [list(rows.values()) for rows in found.values() if rows]
    [[['train/critic1_grad_norm'], ['train/loss']], [['mine/speed']]]
    """
    found: Groups = {title: {} for title in [*SECTIONS, OWN]}
    homes = {row: title for title, rows in SECTIONS.items() for row in rows}
    for name in sorted(names):
        row = row_of(name) or Metric(name, "", "")
        found[homes.get(row, OWN)].setdefault(row, []).append(name)
    return found


def healthy(name: str) -> tuple[float, float] | None:
    """Returns the range of a metric that no alert's limit excludes; None: no alert.

    >>> healthy("train/kl_over_target"), healthy("train/loss")
    ((-inf, 2.0), None)
    """
    low, high, known = -math.inf, math.inf, False
    for alert in _alerts(name):
        own = [limit for limit in alert.limits if not limit.metric]
        below = [limit.number for limit in own if limit.passes(0, 1)]
        above = [limit.number for limit in own if limit.passes(1, 0)]
        known = True
        if below:
            low = max(low, *below)
        elif above:
            high = min(high, *above)
    return (low, high) if known else None


def _alerts(name: str) -> list[Alert]:
    """Returns the alerts that look at a metric."""
    return [alert for alert in ALERTS if match(alert.metric, name) is not None]


def _fold(run: Record, title: str, rows: dict[Metric, list[str]]) -> Fold:
    constant = {
        name: value
        for names in rows.values()
        for name in names
        if (value := _only_value(run, name)) is not None
    }
    moving = {
        row: left
        for row, names in rows.items()
        if (left := [name for name in names if name not in constant])
    }
    parts = [Grid([_chart(run, row, names) for row, names in moving.items()], True)]
    shown = [_constants(constant)] if constant else []
    count = sum(map(len, moving.values()))
    heading = f"{title} · {count} that moved" if count else f"{title} · nothing moved"
    return Fold(heading, [*parts, *shown] if moving else shown, title in FIRST)


def _only_value(run: Record, name: str) -> float | None:
    """Returns the value of a metric that never changed.

    None: it changed, differs between members, or was never finite.
    """
    if f"q25/{name}" in run.names and _differs(run, name):
        return None
    _, values = run.series(name)
    first = values[0] if values.size else math.nan
    return float(first) if np.all(values == first) else None


def _differs(run: Record, name: str) -> bool:
    """Returns whether members ever differed in a metric."""
    ends = [run.series(f"{end}/{name}")[1] for end in ("q25", "q75")]
    return not np.array_equal(*ends, equal_nan=True)


def _constants(values: dict[str, float]) -> Fold:
    rows = [
        (code(name), written(value), _meaning(name)) for name, value in values.items()
    ]
    never = table(("metric", "always", "meaning"), rows)
    return Fold(f"{len(rows)} that never changed", [never], open=False)


def _meaning(name: str) -> str:
    row = row_of(name)
    return row.meaning if row else ""


def _chart(run: Record, row: Metric, names: list[str]) -> Chart:
    """Returns the chart of a metric, or of all metrics of a row with a pattern."""
    name = names[0]
    sentences = [row.meaning.removesuffix(".") + "."] if row.meaning else []
    if len(names) > 1:
        title, marks = row.name, _several(run, row, names)
    else:
        title, marks = name, _alone(run, name)
        sentences.append(f"Last: {written(run.last(name))}.")
    sentences += [f"Healthy: {a.healthy}." for a in _alerts(name)][:1]
    text = " ".join(sentences)
    return Chart(title, marks, unit=row.unit, text=text, healthy=healthy(name))


def _alone(run: Record, name: str) -> list[Mark]:
    """Returns the curve of a metric, with its spread if there are several members."""
    return [*spread(run, name, ""), _curve(run, name, "", "one")]


def _several(run: Record, row: Metric, names: list[str]) -> list[Mark]:
    """Returns a curve per metric while there are colours, and threads for the rest."""
    marks: list[Mark] = []
    if len(names) > len(TONES):
        rest = names[len(TONES) :]
        marks.append(Threads(f"{len(rest)} more", [run.series(x) for x in rest]))
    return marks + [
        _curve(run, name, match(row.name, name) or name, tone)
        for name, tone in zip(names, TONES, strict=False)
    ]


def _curve(run: Record, name: str, label: str, tone: str) -> Curve:
    return Curve(label, *run.series(name), tone)

"""Every metric that a run logs: its meaning, and its value for a phase of updates.

`python -m ppo_jax.host.metrics.catalogue` prints the table as `docs/metrics.md`.
"""

import functools
from collections.abc import Iterable
from typing import Any

import numpy as np

from ppo_jax.attacks.metrics import ADVERSARY
from ppo_jax.component.suggestion import unknown
from ppo_jax.host.metrics.rows import HOSTED, POPULATION
from ppo_jax.host.process import tables
from ppo_jax.metrics.reductions import MEAN, Metric
from ppo_jax.metrics.rows import match
from ppo_jax.optimizers.metrics import OPTIMIZER
from ppo_jax.ppo.metrics import ERRORS, MEMORY, OBSERVATIONS, ROLLOUT, STEPS
from ppo_jax.terms.metrics import POLICY, RISK, VALUE

SECTIONS = {
    "Rollouts": ROLLOUT,
    "Policy": POLICY,
    "Value": VALUE,
    "Risk": RISK,
    "Adversary": ADVERSARY,
    "Steps and gradients": STEPS,
    "Memory": MEMORY,
    "Observations": OBSERVATIONS,
    "Optimiser": OPTIMIZER,
    "Errors and alerts": ERRORS,
    "Evaluation and time": HOSTED,
    "Populations": POPULATION,
}
METRICS = tuple(row for rows in SECTIONS.values() for row in rows)


def row_of(name: str, rows: tuple[Metric, ...] = METRICS) -> Metric | None:
    """Returns the row of a metric, or None if it has none."""
    return next((row for row in rows if match(row.name, name) is not None), None)


def absent(name: str, known: Iterable[str]) -> str:
    """Returns the message that a run lacks a metric: what it needs, or the closest.

    >>> absent("train/kl", ["train/loss"])
    'train/kl is measured only with `ClosedForm`'
    """
    row = row_of(name)
    if row is None or not row.needs or "*" in row.name:
        return unknown("metric", name, known)
    return f"{name} is measured only with {row.needs}"


@functools.lru_cache(maxsize=8)
def _rows_of(
    names: tuple[str, ...], own: tuple[Metric, ...]
) -> dict[str, Metric | None]:
    """Returns the row of each metric; cached, as all phases have the same metrics."""
    rows = METRICS + own
    return {name: row_of(name, rows) for name in names}


def summarize(
    history: dict[str, np.ndarray], own: tuple[Metric, ...] = ()
) -> dict[str, Any]:
    """Returns the metrics of a phase, a number each, or one per member, `[P]`.

    Args:
        history: Metrics of every update of the phase, `[n]` each; or those of
            all members, `[n, P]`, which takes hardly longer than one.
        own: Rows that the experiment adds to the table.

    Returns:
        The metrics of all rows that follow from the history. A metric that has no row
        is averaged, unless it is only the source of one.
    """
    rows = METRICS + own
    used = {source for row in rows for source in row.sources}
    summary = {}
    known = _rows_of(tuple(history), own)
    for name, values in history.items():
        row = known[name]
        if row is not None:
            summary[name] = row.reduction.over(values)
        elif name not in used:
            summary[name] = MEAN.over(values)
    for row in rows:
        if row.sources and history.keys() >= set(row.sources):
            summary[row.name] = row.reduction.over(
                *(history[name] for name in row.sources)
            )
    return summary


INTRODUCTION = """\
# Metrics

What a run writes to `metrics.jsonl` and tensorboard, a row per phase of updates, by
environment steps. Generated from
[`ppo_jax/host/metrics/catalogue.py`](../ppo_jax/host/metrics/catalogue.py):
`python -m ppo_jax.host.metrics.catalogue > docs/metrics.md`.

An update averages over the examples of all its optimiser steps, by their weight.
*Phase* says what becomes of its updates: those where a metric is unavailable do not
count, and if it is so in all of them, it is null in `metrics.jsonl` and missing in
tensorboard. A part of your own says in `says` what its metrics are, in rows such as
these ([`Metric`](../ppo_jax/metrics/reductions.py)); what is in no row is averaged.
What a run has, yours included, is told in a table beside its `metrics.jsonl`.
What the alerts `warn/*` mean is told in [`monitoring.md`](monitoring.md).
"""
HEADER = ("metric", "unit", "meaning", "phase", "only with", "unavailable when")
OF_A_RUN = """\
# Metrics of this run

What is in `metrics.jsonl` and tensorboard, a row per phase of updates. *Phase* says
what becomes of its updates. What has neither unit nor meaning is in the `says` of no
part of the experiment.

"""


def document() -> str:
    """Returns the table of all metrics as Markdown."""
    parts = [f"\n## {title}\n\n{_table(rows)}" for title, rows in SECTIONS.items()]
    return "".join([INTRODUCTION, *parts])


def of_a_run(names: Iterable[str], own: Iterable[Metric]) -> str:
    """Returns the table of these metrics, given the rows that an experiment adds.

    >>> own = (Metric("mine/speed", "m/s", "Of the car."),)
    >>> of_a_run(["mine/speed"], own).splitlines()[-1]
    '| `mine/speed` | m/s | Of the car. | mean |  |  |'
    """
    known = (*METRICS, *own)
    rows = [row_of(name, known) or Metric(name, "", "") for name in names]
    return OF_A_RUN + _table(dict.fromkeys(rows))


def charts(
    names: Iterable[str], own: Iterable[Metric]
) -> dict[str, dict[str, list[str]]]:
    """Returns the metrics that are drawn together: those of one section and unit.

    A metric without a unit has a chart of its own. Rows that an experiment adds are a
    section too. Metrics that have no row, or are of single members, are in no chart.

    >>> charts(["eval/mean_reward", "eval/q25_reward", "time/fps"], ())
    {'Evaluation and time': {'reward': ['eval/mean_reward', 'eval/q25_reward'], \
'steps / s': ['time/fps']}}
    """
    sections = SECTIONS | {"Populations": (), "Of this experiment": tuple(own)}
    found: dict[str, dict[str, list[str]]] = {title: {} for title in sections}
    for name in dict.fromkeys(names):
        for title, rows in sections.items():
            row = row_of(name, rows)
            if row is not None:
                found[title].setdefault(row.unit or name, []).append(name)
                break
    return {title: within for title, within in found.items() if within}


def _table(rows: Iterable[Metric]) -> str:
    cells = [
        (f"`{name}`", unit, meaning, reduction.text, needs, null)
        for name, unit, meaning, reduction, _, needs, null in rows
    ]
    return tables.markdown(HEADER, cells)


if __name__ == "__main__":
    print(document(), end="")

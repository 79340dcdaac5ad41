"""What the runs of a sweep scored: every evaluation, and a table of settings."""

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from ppo_jax import files, tables
from ppo_jax.metrics import EVALUATIONS
from ppo_jax.sweeps import settings
from ppo_jax.sweeps.aggregate import (
    interquartile_mean,
    interval,
    probability_of_improvement,
)
from ppo_jax.sweeps.cohorts import Member
from ppo_jax.sweeps.settings import Setting

Score = dict[str, Any]
"""One run: its setting, seed, how it ended, and its evaluations over steps."""
HEADER = ("setting", "runs", "IQM", "95 %", "P(better than the first)", "95 %")


def of_batch(run_dir: Path, members: Sequence[Member], ending: str) -> list[Score]:
    """The runs of a batch, each once; a value that is not finite is None."""
    rows = files.rows(run_dir / "metrics.jsonl")
    rows = [row for row in rows if EVALUATIONS[0] in row]
    alone = len(members) == 1
    return [
        {
            "setting": member.setting,
            "seed": member.seed,
            "ending": ending,
            "steps": [row["step"] for row in rows],
            "evaluations": {
                name: [row[name if alone else f"each/{name}/{i}"] for row in rows]
                for name in EVALUATIONS
            },
        }
        for i, member in enumerate(members)
        if member not in members[:i]
    ]


def table(
    scores: Sequence[Score], found: Sequence[Setting], metric: str
) -> list[dict[str, Any]]:
    """What is said of each setting that has runs: a row, in the order of settings.

    Args:
        scores: All runs.
        found: The settings.
        metric: Of whose last value the table is.
    """
    last: list[list[float]] = [[] for _ in found]
    for score in scores:
        values = score["evaluations"][metric]
        known = values[-1] if values and values[-1] is not None else math.nan
        last[score["setting"]].append(known)
    columns = [np.array(values, np.float64)[:, None] for values in last]
    first = next((column for column in columns if column.size), np.zeros((0, 1)))
    return [
        {
            "setting": settings.plain(setting),
            "runs": column.size,
            "iqm": float(interquartile_mean(column)),
            "interval": interval(interquartile_mean, column),
            "improvement": float(probability_of_improvement(column, first)),
            "improvement_interval": interval(probability_of_improvement, column, first),
        }
        for setting, column in zip(found, columns, strict=True)
        if column.size
    ]


def markdown(rows: Sequence[dict[str, Any]]) -> str:
    """The table as text."""

    def pair(ends: tuple[float, float]) -> str:
        return f"{ends[0]:.4g} to {ends[1]:.4g}"

    cells = [
        (
            settings.label(row["setting"]),
            str(row["runs"]),
            f"{row['iqm']:.4g}",
            pair(row["interval"]),
            f"{row['improvement']:.2f}",
            pair(row["improvement_interval"]),
        )
        for row in rows
    ]
    return tables.markdown(HEADER, cells)


def as_json(value: Any) -> Any:
    """The same without numbers that are not finite, which JSON does not know.

    >>> as_json({"iqm": -math.inf, "interval": (0.5, math.nan)})
    {'iqm': None, 'interval': [0.5, None]}
    """
    if isinstance(value, dict):
        return {name: as_json(each) for name, each in value.items()}
    if isinstance(value, list | tuple):
        return [as_json(each) for each in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value

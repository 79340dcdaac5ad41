"""Scores of the runs of a sweep: every evaluation, and a table of settings."""

import json
import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from ppo_jax.host.metrics.rows import EVALUATIONS
from ppo_jax.host.process import tables
from ppo_jax.host.run_dir import batched, files
from ppo_jax.host.run_dir.names import LOG, RESULTS
from ppo_jax.sweeps import aggregate, settings
from ppo_jax.sweeps.cohorts import Member
from ppo_jax.sweeps.settings import Setting

Score = dict[str, Any]
"""One run: its setting, seed, how it ended, and its evaluations over steps."""
BATCH = batched.SCORES
HEADER = ("setting", "runs", "IQM", "95 %", "P(better than the first)", "95 %")
ENOUGH = 5
"""The fewest runs of a setting whose interval is not far too narrow."""
NARROW = f"Intervals of fewer than {ENOUGH} runs are far too narrow."
MORE = f"""\
Train several of each, in the same programs: --seeds {ENOUGH} with another --run-dir.
"""
ALONE = f"""\
One run of a setting says nothing of chance: no interval, no better or worse.
{MORE}"""
FEW = f"{NARROW}\n{MORE}"
UNCOMPARED: dict[str, Any] = {"improvement": None, "improvement_interval": None}
"""The statistics that a setting does not have against itself."""


def of_batch(
    run_dir: Path, members: Sequence[Member], endings: Sequence[str]
) -> list[Score]:
    """Returns the scores of a batch, each run once; values not finite are None."""
    rows = files.rows(run_dir / LOG)
    rows = [row for row in rows if EVALUATIONS[0] in row]
    alone = len(members) == 1
    return [
        {
            "setting": member.setting,
            "seed": member.seed,
            "ending": endings[i],
            "steps": [row["step"] for row in rows],
            "evaluations": {
                name: [row[name if alone else f"each/{name}/{i}"] for row in rows]
                for name in EVALUATIONS
            },
        }
        for i, member in enumerate(members)
        if member not in members[:i]
    ]


def keep(
    run_dir: Path, members: Sequence[Member], endings: Sequence[str]
) -> list[Score]:
    """Writes the scores of a batch beside its runs, and returns them."""
    found = of_batch(run_dir, members, endings)
    files.write(run_dir / BATCH, json.dumps(found))
    return found


def kept(run_dir: Path, members: Sequence[Member]) -> list[Score] | None:
    """Returns the kept scores of a batch; None: it is not finished.

    Scores that cannot be read, or are of other members, are as if there were none: a
    batch whose agents are trained has the same again.
    """
    path = run_dir / BATCH
    try:
        found = json.loads(path.read_text()) if path.exists() else None
    except ValueError:
        return None
    if not isinstance(found, list) or not all(map(_is_score, found)):
        return None
    asked = {(member.setting, member.seed) for member in members}
    return found if {(x["setting"], x["seed"]) for x in found} == asked else None


def write(
    run_dir: Path, runs: Sequence[Score], found: Sequence[Setting], metric: str
) -> list[dict[str, Any]]:
    """Writes the results of a sweep so far, and returns the table of settings."""
    rows = table(runs, found, metric)
    results = {
        "metric": metric,
        "settings": [settings.plain(setting) for setting in found],
        "runs": runs,
        "table": rows,
    }
    files.write_json(run_dir / RESULTS, results)
    return rows


def table(
    scores: Sequence[Score], found: Sequence[Setting], metric: str
) -> list[dict[str, Any]]:
    """Returns a row of statistics per setting that has runs, in the order of settings.

    Values that need several runs are None for a single one, which may be chance.

    Args:
        scores: All runs.
        found: The settings.
        metric: The metric whose last value the table compares.
    """
    last: list[list[float]] = [[] for _ in found]
    for score in scores:
        last[score["setting"]].append(final(score, metric))
    columns = [np.array(values, np.float64)[:, None] for values in last]
    first = next((column for column in columns if column.size), np.zeros((0, 1)))
    return [
        {"setting": settings.plain(setting)} | statistics(column, first)
        for setting, column in zip(found, columns, strict=True)
        if column.size
    ]


def final(score: Score, metric: str) -> float:
    """Returns the last value of a run's metric; NaN: it was not finite, or it failed.

    >>> score = {"ending": "finished", "evaluations": {"eval/mean_reward": [1.0, 2.0]}}
    >>> final(score, "eval/mean_reward")
    2.0
    """
    values = [] if score.get("ending") == "failed" else score["evaluations"][metric]
    return values[-1] if values and values[-1] is not None else math.nan


def markdown(rows: Sequence[dict[str, Any]]) -> str:
    """Returns the table as text, and what is to be done if there are few runs.

    The first setting is not compared with itself.
    """
    shown = [row | UNCOMPARED if i == 0 else row for i, row in enumerate(rows)]
    cells = [
        (
            settings.label(row["setting"]),
            str(row["runs"]),
            f"{row['iqm']:.4g}",
            _pair(row["interval"]),
            "" if row["improvement"] is None else f"{row['improvement']:.2f}",
            _pair(row["improvement_interval"]),
        )
        for row in shown
    ]
    text = tables.markdown(HEADER, cells)
    least = min((row["runs"] for row in rows), default=ENOUGH)
    if least >= ENOUGH:
        return text
    return f"{text}\n{ALONE if least == 1 else FEW}"


def statistics(column: np.ndarray, first: np.ndarray) -> dict[str, Any]:
    """Returns statistics of a setting's scores `[runs, 1]`, and against `first`."""
    better = _interval(aggregate.probability_of_improvement, column, first)
    improvement = float(aggregate.probability_of_improvement(column, first))
    return {
        "runs": column.size,
        "iqm": float(aggregate.interquartile_mean(column)),
        "interval": _interval(aggregate.interquartile_mean, column),
        "improvement": None if better is None else improvement,
        "improvement_interval": better,
    }


def _is_score(found: Any) -> bool:
    """Returns whether a value from JSON has all of a score."""
    if not isinstance(found, dict):
        return False
    who = found.get("setting"), found.get("seed")
    steps, evaluations = found.get("steps"), found.get("evaluations")
    if not isinstance(steps, list) or not isinstance(evaluations, dict):
        return False
    return (
        all(isinstance(number, int) for number in (*who, *steps))
        and isinstance(found.get("ending"), str)
        and all(_are_values(evaluations.get(name), len(steps)) for name in EVALUATIONS)
    )


def _are_values(found: Any, count: int) -> bool:
    known = isinstance(found, list) and len(found) == count
    return known and all(isinstance(x, int | float | None) for x in found)


def _interval(statistic: Any, *scores: np.ndarray) -> tuple[float, float] | None:
    several = min(map(len, scores)) > 1
    return aggregate.interval(statistic, *scores) if several else None


def _pair(ends: tuple[float, float] | None) -> str:
    return "" if ends is None else f"{ends[0]:.4g} to {ends[1]:.4g}"

"""Contenders of a comparison: settings, each with the runs of its seeds."""

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from ppo_jax.errors import UserError
from ppo_jax.host.metrics.figures import SCORE
from ppo_jax.host.run_dir.names import RESULTS
from ppo_jax.reports.records import Record, numbers, read
from ppo_jax.sweeps import plan, settings

SEED, OFF = "seed", "None"
FEW = 3
"""The most fields that the name of a contender lists."""


class Trial(NamedTuple):
    """The evaluations of one run."""

    name: str
    steps: np.ndarray
    scores: np.ndarray
    failed: bool = False
    """Whether it was in a sweep, and took no finite step to its end."""

    @property
    def scored(self) -> bool:
        """Whether it has a score: it was evaluated before, or failed."""
        return self.failed or self.scores.size > 0

    @property
    def last(self) -> float:
        """The score of the last evaluation; NaN if it was not finite, or it failed."""
        known = self.scores.size and not self.failed
        return float(self.scores[-1]) if known else float("nan")


class Contender(NamedTuple):
    """A setting, and its runs."""

    name: str
    trials: list[Trial]
    setting: Mapping[str, Any] = {}
    """Values that the sweep gave to fields, by path."""

    @property
    def column(self) -> np.ndarray:
        """The scores of its runs that have one, `[runs, 1]`."""
        return np.array([trial.last for trial in self.trials if trial.scored])[:, None]


def is_sweep(path: Path) -> bool:
    """Returns whether a directory is that of a sweep."""
    return (path / plan.KEPT).exists() or (path / RESULTS).exists()


def gather(paths: Sequence[Path]) -> tuple[list[Contender], list[Record], str]:
    """Returns the contenders of directories, those that are runs, and their metric.

    Contenders without a score come last.

    Raises:
        UserError: If a path is no run or sweep, cannot be read or is given twice, or if
            they have no score in common.
    """
    for path, count in Counter(path.resolve() for path in paths).items():
        if count > 1:
            raise UserError(f"{path}: is given twice")
    sweeps = [_sweep(path) for path in paths if is_sweep(path)]
    runs = [read(path) for path in paths if not is_sweep(path)]
    metrics = {metric for metric, _ in sweeps} | ({SCORE} if runs else set())
    if len(metrics) > 1:
        raise UserError(f"these have no score in common: {', '.join(sorted(metrics))}")
    many = len(paths) > 1
    found = [
        each._replace(name=f"{path}: {each.name}") if many else each
        for path, (_, settled) in zip(filter(is_sweep, paths), sweeps, strict=True)
        for each in settled
    ]
    found = sorted(found + of_runs(runs), key=lambda each: not each.column.size)
    return found, runs, metrics.pop()


def of_runs(runs: Sequence[Record]) -> list[Contender]:
    """Groups runs into contenders: runs that differ in their seed alone are one."""
    groups: dict[Any, list[Record]] = {}
    seen: Counter = Counter()
    for run in runs:
        about = json.dumps(_without_seed(run)) if run.description else run.name
        again = seen[about, run.field(SEED)]
        seen[about, run.field(SEED)] += 1
        groups.setdefault((about, again), []).append(run)
    firsts = [group[0] for group in groups.values()]
    shown = differing(firsts)
    names = [_name(group, shown) for group in groups.values()]
    return [
        Contender(
            name if names.count(name) == 1 else _of_runs(group),
            [_trial(run) for run in group],
        )
        for name, group in zip(names, groups.values(), strict=True)
    ]


def differing(runs: Sequence[Record]) -> list[str]:
    """Returns the paths of fields, other than the seed, that differ between runs.

    A field that a run lacks counts as `None`.
    """
    paths = dict.fromkeys(path for run in runs for path in run.description)
    return [
        path
        for path in paths
        if path != SEED and len({run.field(path, OFF) for run in runs}) > 1
    ]


def _without_seed(run: Record) -> dict[str, str]:
    given = {path: field["value"] for path, field in run.description.items()}
    return {path: x for path, x in given.items() if path != SEED and x != OFF}


def _name(group: Sequence[Record], shown: Sequence[str]) -> str:
    fields = [f"{path}={group[0].field(path, OFF)}" for path in shown]
    if len(group) > 1 and 0 < len(fields) <= FEW:
        return " ".join(fields)
    return _of_runs(group)


def _of_runs(group: Sequence[Record]) -> str:
    more = f" and {len(group) - 1} more" if len(group) > 1 else ""
    return group[0].name + more


def _trial(run: Record) -> Trial:
    return Trial(run.name, *run.series(SCORE))


def _sweep(path: Path) -> tuple[str, list[Contender]]:
    """Returns the metric of a sweep, and its settings that have runs."""
    file = path / RESULTS
    if not file.exists():
        raise UserError(f"{path}: no batch of this sweep is finished")
    try:
        results = json.loads(file.read_text())
        metric = results["metric"]
        found = [
            Contender(settings.label(setting), [], setting)
            for setting in results["settings"]
        ]
        for run in results["runs"]:
            steps, values = run["steps"], run["evaluations"][metric]
            failed = run.get("ending") == "failed"
            name = f"{path}: seed {run['seed']}"
            trial = Trial(name, numbers(steps), numbers(values), failed)
            found[run["setting"]].trials.append(trial)
    except (OSError, ValueError, LookupError, TypeError, AttributeError) as error:
        raise UserError(f"{file}: is no result of a sweep: {error!r}") from error
    return metric, [each for each in found if each.trials]

"""Records of runs, read from their directories even if files are damaged."""

import contextlib
import json
import math
from collections.abc import Iterable, Set
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path
from types import NoneType
from typing import Any

import numpy as np

from ppo_jax.component import former
from ppo_jax.errors import UserError
from ppo_jax.host.metrics.figures import SCORE, Rows
from ppo_jax.host.run_dir import batched, experiment, files, lineage
from ppo_jax.host.run_dir.claims import is_own
from ppo_jax.host.run_dir.description import Description
from ppo_jax.host.run_dir.names import BACKTEST_PAGE, LINEAGE, LOG, SCHEDULE
from ppo_jax.monitoring import status

HUGE = 1e300
"""Numbers from here on are taken for damages."""
NEVER = np.zeros(0, int), np.zeros(0)
"""Rows and values of a metric that was never logged."""
STEP, SECONDS, UPDATES = "step", "time/time_elapsed", "time/iterations"


@dataclass(frozen=True)
class Record:
    """Contents of a run's directory."""

    path: Path
    rows: Rows
    generations: list[dict[str, Any]]
    """The lineage; empty for a single run."""
    description: Description
    """Fields of the experiment, and whole schedules of numbers that follow one; empty
    if they cannot be read."""
    measured: dict[str, dict[str, Any]]
    """JSON files that commands have left in the directory, by name."""
    notes: list[str]
    """Messages about missing or damaged files."""

    @property
    def name(self) -> str:
        """The directory of the run."""
        return str(self.path)

    @cached_property
    def members(self) -> int:
        """The number of members that it trained."""
        first = f"each/{SCORE}/"
        evaluated = len({name for name in self.names if name.startswith(first)})
        begun = len(self.generations[0]["parent"]) if self.generations else 1
        return max(begun, evaluated)

    @property
    def names(self) -> Set[str]:
        """The names of its metrics."""
        return self._values.keys()

    def series(self, name: str, x: str = STEP) -> tuple[np.ndarray, np.ndarray]:
        """Returns x and a metric where it was logged; NaN where it was not finite.

        >>> rows = [{"step": 1, "x": 2.0}, {"step": 2}, {"step": 3, "x": None}]
        >>> run = Record(Path(), rows, [], {}, {}, [])
        >>> [values.tolist() for values in run.series("x")]
        [[1.0, 3.0], [2.0, nan]]
        """
        where, values = self._values.get(name, NEVER)
        return self.column(x)[where], values

    def column(self, name: str) -> np.ndarray:
        """Returns a metric of every row; NaN where it was not logged, or not finite."""
        where, values = self._values.get(name, NEVER)
        found = np.full(len(self.rows), math.nan)
        found[where] = values
        return found

    def last(self, name: str) -> float:
        """Returns the last finite value of a metric; NaN if it has none."""
        _, values = self.series(name)
        known = values[np.isfinite(values)]
        return float(known[-1]) if known.size else math.nan

    @cached_property
    def _values(self) -> dict[str, tuple[np.ndarray, np.ndarray]]:
        """The rows in which each metric was logged, and its values there."""
        found: dict[str, tuple[list[int], list[Any]]] = {}
        for number, row in enumerate(self.rows):
            for name, value in row.items():
                where, values = found.setdefault(name, ([], []))
                where.append(number)
                values.append(value)
        return {
            name: (np.array(where), numbers(values))
            for name, (where, values) in found.items()
        }

    @property
    def state(self) -> str:
        """Whether it is under way, or how it ended."""
        return self._status.state

    @property
    def kind(self) -> str:
        """Its kind, such as `run` or `batch`."""
        return self._status.kind

    @cached_property
    def _status(self) -> status.Status:
        return status.now(self.path)

    def field(self, path: str, default: str = "") -> str:
        """Returns the value of a field of the experiment, as text."""
        return self.description.get(path, {}).get("value", default)

    def count(self, path: str) -> int | None:
        """Returns the value of a field if it is a known whole number, or None."""
        value = self.field(path)
        return int(value) if value.isdecimal() else None


def read(run_dir: Path) -> Record:
    """Reads the record of a run from its directory.

    Raises:
        UserError: If there is no run, or its log is damaged.
    """
    rows = _logged(run_dir)
    notes: list[str] = []
    names = _tried(lambda: experiment.stored_names(run_dir), run_dir, {}, notes)
    lines = _tried(lambda: _lineage(run_dir), run_dir / LINEAGE, [], notes)
    return Record(
        run_dir,
        former.translated(rows, names),
        former.translated(lines, names),
        _tried(lambda: _description(run_dir), run_dir / experiment.CONFIG, {}, notes)
        | _tried(lambda: _scheduled(run_dir), run_dir / SCHEDULE, {}, notes),
        _measured(run_dir, notes),
        list(dict.fromkeys(notes)),
    )


def numbers(values: Iterable[Any]) -> np.ndarray:
    """Converts values to floats `[n]`; NaN for those that are no numbers."""
    each = list(values)
    with contextlib.suppress(OverflowError):  # Of whole numbers.
        if set(map(type, each)) <= {int, float, NoneType}:
            found = np.array(each, np.float64)
            return np.where(np.abs(found) < HUGE, found, math.nan)
    return np.array([x if is_number(x) else math.nan for x in each], np.float64)


def is_number(value: Any) -> bool:
    """Returns whether a value from JSON is a finite number."""
    known = isinstance(value, int | float) and not isinstance(value, bool)
    return known and abs(value) < HUGE


def _logged(run_dir: Path) -> Rows:
    """Returns the rows of a run, after checking that each has its step and update."""
    path = run_dir / LOG
    try:
        rows = files.rows(path)
    except (OSError, UnicodeDecodeError) as error:
        raise UserError(f"{path}: cannot be read: {error}") from error
    if (run_dir / batched.WALK).exists():
        message = "is a walk-forward, which leaves a page of its own"
        raise UserError(f"{run_dir}: {message}: {run_dir / BACKTEST_PAGE}")
    if not rows and (run_dir / experiment.CONFIG).exists():
        raise UserError(f"{run_dir}: the run has logged nothing yet")
    if not rows:
        raise UserError(experiment.missing(run_dir))
    for number, row in enumerate(rows, start=1):
        for name in (STEP, UPDATES):
            if not is_number(row.get(name)):
                given = repr(row.get(name))
                message = f"{name}: expected a number, got {given:.80}"
                raise UserError(f"{path}: line {number}: {message}")
    return rows


def _tried(read: Any, path: Path, default: Any, notes: list[str]) -> Any:
    """Returns the result of `read`; on an error, notes it and returns the default."""
    try:
        return read()
    except UserError as error:
        notes.append(str(error))
    except (OSError, ValueError, LookupError, TypeError, AttributeError) as error:
        notes.append(f"{path}: cannot be read: {error}")
    return default


def _description(run_dir: Path) -> Description:
    """Returns the fields of the stored experiment; empty if there is no file."""
    if not (run_dir / experiment.CONFIG).exists():
        return {}
    return experiment.stored_description(run_dir)


def _scheduled(run_dir: Path) -> Description:
    """Returns the fields of a replay that follow a schedule, not the experiment."""
    if not (run_dir / SCHEDULE).exists():
        return {}
    schedule = experiment.stored(run_dir, SCHEDULE, list)
    return {
        path: {"kind": "number", "value": lineage.told(schedule, path)}
        for path in schedule[0][1]
    }


def _lineage(run_dir: Path) -> list[dict[str, Any]]:
    """Returns the generations of a population, checked for equal sizes and numbers."""
    path = run_dir / LINEAGE
    lines = files.rows(path)
    for number, line in enumerate(lines, start=1):
        if not _is_generation(line, lines[0]):
            raise UserError(f"{path}: line {number}: no generation of these members")
    return lines


def _is_generation(line: dict[str, Any], first: dict[str, Any]) -> bool:
    parents, searched = line.get("parent"), line.get("numbers")
    if not (isinstance(parents, list) and isinstance(searched, dict)):
        return False
    size = len(first["parent"])
    return (
        is_number(line.get("update"))
        and len(parents) == size
        and all(isinstance(i, int) and 0 <= i < size for i in parents)
        and searched.keys() == first["numbers"].keys()
        and all(isinstance(x, list) and len(x) == size for x in searched.values())
        and all(is_number(value) for each in searched.values() for value in each)
    )


def _measured(run_dir: Path, notes: list[str]) -> dict[str, dict[str, Any]]:
    """Returns the JSON files of a directory that are not of the run itself."""
    paths = [path for path in sorted(run_dir.glob("*.json")) if not is_own(path.name)]
    values = [
        _tried(partial(_json, path), path, default=None, notes=notes) for path in paths
    ]
    named = zip(paths, values, strict=True)
    return {path.name: value for path, value in named if isinstance(value, dict)}


def _json(path: Path) -> Any:
    return json.loads(path.read_text())

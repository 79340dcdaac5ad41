"""Metrics on the host: `metrics.jsonl` and tensorboard events, by environment step.

The meaning of each metric is in `metrics.md`, beside them.
"""

import json
import math
import os
import time
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from ppo_jax.component import former
from ppo_jax.host.metrics.catalogue import charts, of_a_run
from ppo_jax.host.metrics.rows import EVALUATIONS
from ppo_jax.host.process import distributed
from ppo_jax.host.process.command import warn
from ppo_jax.host.run_dir import files
from ppo_jax.host.run_dir.events import Events
from ppo_jax.host.run_dir.names import LOG, MEANINGS
from ppo_jax.host.run_dir.script import ExperimentError
from ppo_jax.metrics import Metric

FLUSH_SECONDS = 10

Row = dict[str, Any]
"""A step, and metrics by name; numbers that are not finite are None."""


def logged(path: Path, names: former.Names) -> Iterator[Row]:
    """Yields the rows of a log by present names, up to a line that is none.

    Args:
        path: The file.
        names: Present names of tuples' items by their former names in it.

    Raises:
        ExperimentError: At that line; the message says which it is.
    """
    for number, row in enumerate(files.each_row(path), start=1):
        place = f"{path}: line {number}"
        if not isinstance(row.get("step"), int):
            given = repr(row.get("step"))
            message = f"step: expected a whole number, got {given:.80}"
            raise ExperimentError(f"{place}: {message}")
        for name, value in row.items():
            if not isinstance(value, int | float | None):
                message = f"{name}: expected a number, got {value!r:.80}"
                raise ExperimentError(f"{place}: {message}")
        yield former.translated(row, names)


def until(path: Path, step: int, names: former.Names) -> list[Row]:
    """Returns the rows of a log up to a step, whatever the lines after it are.

    Args:
        path: The file.
        step: Environment steps.
        names: Present names of tuples' items by their former names in it.

    Raises:
        ExperimentError: If a line before that step is no row; the message says which.
    """
    rows, reached = [], 0
    try:
        for row in logged(path, names):
            rows += [row] if row["step"] <= step else []
            reached = row["step"]
    except ExperimentError:
        if reached < step:
            raise
    return rows


class Rows:
    """Rows of metrics, one per phase, in memory.

    Args:
        before: Rows of a run that resumes.
        began: When it started or resumed, by `time.monotonic`.

    Attributes:
        last: The newest row; empty before the first.
    """

    def __init__(self, before: Sequence[Row], began: float):
        self._rows = list(before)
        self.last: Row = before[-1] if before else {}
        self._began = began - (self.last.get("time/time_elapsed") or 0.0)

    def write(self, step: int, metrics: dict[str, float]) -> Row:
        """Appends a row and returns it."""
        metrics = metrics | {"time/time_elapsed": time.monotonic() - self._began}
        numbers = {name: float(metrics[name]) for name in sorted(metrics)}
        finite = {k: v if math.isfinite(v) else None for k, v in numbers.items()}
        self.last = {"step": step} | finite
        self._keep(self.last)
        return self.last

    def read(self) -> list[Row]:
        """Returns all rows so far."""
        return self._rows

    def settle(self) -> None:
        """Returns once a power cut cannot take any of the rows, if they are files."""

    def close(self) -> None:
        """Completes files and closes them, if there are any."""

    def _keep(self, row: Row) -> None:
        self._rows.append(row)


class Logger(Rows):
    """Writes rows to a run directory, each as a line and as an event.

    A run that resumes is cut back to the step it resumes from. Its events, of which
    some may have been lost, are written again from the rows, so that both hold each
    step once.

    Args:
        run_dir: The run's directory.
        first_step: Environment steps done when the run starts or resumes.
        names: Names of items of tuples in its rows, if an earlier version wrote them,
            and their present names.
        own: Descriptions of the experiment's own metrics.
        began: When the run started or resumed, by `time.monotonic`.

    Raises:
        ExperimentError: If a line before that step is no row.
        OSError: Here and in every method, if the disk does not take it.
    """

    def __init__(
        self,
        run_dir: Path,
        first_step: int,
        names: former.Names,
        own: Iterable[Metric],
        began: float,
    ):
        self._own, self._told = tuple(own), set[str]()
        self._path = run_dir / LOG
        rows = until(self._path, first_step, names)
        files.write(self._path, "".join(json.dumps(row) + "\n" for row in rows))
        super().__init__(rows[-1:], began)
        self._epoch = time.time() - time.monotonic()
        self._events = Events(run_dir)
        for row in rows:
            self._tell(row)
        self._flushed = -math.inf

    def tell_lost(self, step: int) -> None:
        """Warns if the rows end before the step of the checkpoint that goes on."""
        last = self.last.get("step", 0)
        if last < step and distributed.is_first():
            warn(
                f"{self._path}: ends at step {last:,}, but the checkpoint is of step "
                f"{step:,}; the rows between are lost"
            )

    def read(self) -> list[Row]:
        return files.rows(self._path)

    def settle(self) -> None:
        with self._path.open("ab") as file:
            os.fsync(file.fileno())

    def close(self) -> None:
        self._events.close()

    def _keep(self, row: Row) -> None:
        with self._path.open("a") as file:
            file.write(json.dumps(row) + "\n")
        self._tell(row)
        if time.monotonic() > self._flushed + FLUSH_SECONDS:
            self._events.flush()
            self._flushed = time.monotonic()

    def _tell(self, row: Row) -> None:
        """Writes the event of a row, and describes metrics once they appear."""
        when = self._epoch + self._began + (row.get("time/time_elapsed") or 0.0)
        if not self._told:
            self._events.layout(charts([*row, *EVALUATIONS], self._own), when)
        if not row.keys() <= self._told:
            self._told |= row.keys()
            text = of_a_run(sorted(self._told - {"step"}), self._own)
            files.write(self._path.with_name(MEANINGS), text)
        known = {k: v for k, v in row.items() if k != "step" and v is not None}
        self._events.numbers(row["step"], when, known)

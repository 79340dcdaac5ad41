"""Stopping a run before its budget is spent, by its config's bounds or a callback."""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from ppo_jax.config import Config
from ppo_jax.host.metrics.alarms import Alarms
from ppo_jax.host.metrics.catalogue import absent
from ppo_jax.host.metrics.members import over_members, said_by_each
from ppo_jax.host.metrics.rows import HOSTED, POPULATION
from ppo_jax.host.process import distributed
from ppo_jax.host.process.console import Console, duration, figure
from ppo_jax.host.run_dir.experiment import ExperimentError
from ppo_jax.host.run_dir.logger import Row

Callback = Callable[[int, Row], Any]
"""Function of the environment steps done and the row of metrics; True stops the run."""


def deaf(step: int, row: Row) -> None:
    """Does nothing: the callback of a run that has none."""


class Stop:
    """The bounds and the callback that may stop a run after a phase.

    Args:
        config: The experiment, with its bounds.
        callback: Callback to ask beside the bounds.
        console: Console that prints what ends the run.

    Attributes:
        error: Error of the callback; it is raised again once the run is saved.
    """

    def __init__(self, config: Config, callback: Callback, console: Console):
        self._config, self._callback, self._console = config, callback, console
        self.error: BaseException | None = None

    def before(self, row: Row) -> str:
        """Returns `stopped` if a run's last row reached a bound, otherwise no text."""
        return self._ending(bool(row) and self._bounded(row))

    def after(self, row: Row) -> str:
        """Returns `stopped` if the run ends after this phase, otherwise no text."""
        return self._ending(self._wished(row) | self._bounded(row))

    def reraise(self) -> None:
        """Raises the error of the callback, if there was one."""
        if self.error is not None:
            raise self.error

    def _ending(self, asked: bool) -> str:
        return "stopped" if distributed.any_of(asked) else ""

    def _wished(self, row: Row) -> bool:
        """Returns whether the callback asks for an end, and prints that it does."""
        try:
            answer = self._callback(row["step"], dict(row))
        except BaseException as error:
            self.error = error
            return True
        if _is_true(answer):
            self._console.note("the callback returned True, which ends the run")
            return True
        return False

    def _bounded(self, row: Row) -> bool:
        """Returns whether a bound is reached, and prints which one."""
        goals, seconds = self._config.stop_at or (), self._config.max_seconds
        if goals and all(_reached(row.get(name), goal) for name, goal in goals):
            reached = (f"{name} is {figure(row[name])}" for name, _ in goals)
            self._console.note(f"{' and '.join(reached)}, which stop_at asked for")
            return True
        if seconds is not None and row["time/time_elapsed"] >= seconds:
            self._console.note(f"{duration(seconds)} are over, which is max_seconds")
            return True
        return False


def require_known(config: Config, size: int) -> None:
    """Checks that the run has the metrics that are to stop it.

    Args:
        config: The experiment.
        size: Number of members that a row of the run covers.

    Raises:
        ExperimentError: If it does not; the message names the part that a metric needs,
            or the closest metric.
    """
    if config.stop_at:
        known = _names(config, size)
        for name, _ in config.stop_at:
            if name not in known:
                raise ExperimentError(f"Config.stop_at: {absent(name, known)}")


def _names(config: Config, size: int) -> Mapping[str, float]:
    """Returns the metrics of a row after an evaluation, for their names."""
    hosted = {row.name: 0.0 for row in HOSTED}
    members = [said_by_each(config) | hosted] * size
    flags, _ = Alarms().check(members)
    searched = {row.name for row in POPULATION if row.name.startswith("pbt/")}
    known = over_members(members, np.zeros(len(members))) | flags
    return known if config.pbt is None else known | dict.fromkeys(searched, 0.0)


def _is_true(answer: Any) -> bool:
    """Returns whether an answer is a single True, of Python, NumPy or JAX."""
    kind, shape = getattr(answer, "dtype", type(answer)), getattr(answer, "shape", ())
    return kind in (bool,) and shape == () and bool(answer)


def _reached(value: float | None, goal: float) -> bool:
    return value is not None and value >= goal

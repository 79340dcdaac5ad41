"""What stops a run before its budget is spent: bounds of its config, or a callback."""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from ppo_jax.component.suggestion import unknown
from ppo_jax.config import Config
from ppo_jax.host.metrics.alarms import Alarms
from ppo_jax.host.metrics.members import over_members, said_by_each
from ppo_jax.host.metrics.rows import HOSTED, POPULATION
from ppo_jax.host.process import distributed
from ppo_jax.host.process.console import Console, duration, figure
from ppo_jax.host.run_dir.experiment import ExperimentError
from ppo_jax.host.run_dir.logger import Row

Callback = Callable[[int, Row], Any]
"""Is given the environment steps done and the row of metrics; True stops the run."""


def deaf(step: int, row: Row) -> None:
    """A callback that nothing stops."""


class Stop:
    """Asks after each phase whether the run is to stop.

    Args:
        config: The experiment, with its bounds.
        callback: Whom to ask beside them.
        console: Where it is said why.

    Attributes:
        error: What the callback raised; the run is saved before it is heard of.
    """

    def __init__(self, config: Config, callback: Callback, console: Console):
        self._config, self._callback, self._console = config, callback, console
        self.error: BaseException | None = None

    def before(self, row: Row) -> str:
        """How a run has ended whose last row is this one, or nothing."""
        return self._ending(bool(row) and self._bounded(row))

    def after(self, row: Row) -> str:
        """How the run ends after a phase, or nothing."""
        return self._ending(self._wished(row) | self._bounded(row))

    def reraise(self) -> None:
        """Raises what the callback raised, if it did."""
        if self.error is not None:
            raise self.error

    def _ending(self, asked: bool) -> str:
        return "stopped" if distributed.any_of(asked) else ""

    def _wished(self, row: Row) -> bool:
        try:
            said = self._callback(row["step"], dict(row))
            return isinstance(said, bool | np.bool_) and bool(said)
        except BaseException as error:
            self.error = error
            return True

    def _bounded(self, row: Row) -> bool:
        """Whether a bound is reached, which is said."""
        goals, seconds = self._config.stop_at or (), self._config.max_seconds
        if goals and all(_reached(row.get(name), goal) for name, goal in goals):
            said = " and ".join(f"{name} is {figure(row[name])}" for name, _ in goals)
            self._console.note(f"{said}, as far as stop_at goes")
            return True
        if seconds is not None and row["time/time_elapsed"] >= seconds:
            self._console.note(f"{duration(seconds)} are over, which is max_seconds")
            return True
        return False


def require_known(config: Config, size: int) -> None:
    """Checks that the run will say what it is to be stopped by.

    Args:
        config: The experiment.
        size: How many members a row of the run is of.

    Raises:
        ExperimentError: If not; the message names the closest metric.
    """
    if config.stop_at:
        known = _names(config, size)
        for name, _ in config.stop_at:
            if name not in known:
                said = unknown("metric", name, known)
                raise ExperimentError(f"Config.stop_at: {said}")


def _names(config: Config, size: int) -> Mapping[str, float]:
    """What a row of the run has, once it was evaluated."""
    hosted = {row.name: 0.0 for row in HOSTED}
    members = [said_by_each(config) | hosted] * size
    flags, _ = Alarms().check(members)
    searched = {row.name for row in POPULATION if row.name.startswith("pbt/")}
    known = over_members(members, np.zeros(len(members))) | flags
    return known if config.pbt is None else known | dict.fromkeys(searched, 0.0)


def _reached(value: float | None, goal: float) -> bool:
    return value is not None and value >= goal

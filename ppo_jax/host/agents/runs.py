"""Checkpoints of runs, which are found on disk and restored for use."""

import functools
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from ppo_jax.component import former
from ppo_jax.config import Config
from ppo_jax.host.loop import beginning, training
from ppo_jax.host.metrics.members import fittest
from ppo_jax.host.process.command import warn
from ppo_jax.host.programs import lapack
from ppo_jax.host.run_dir import batched, experiment, files, script
from ppo_jax.host.run_dir.description import (
    Description,
    as_now,
    describe,
    differences,
    former_names,
)
from ppo_jax.host.run_dir.experiment import ExperimentError
from ppo_jax.host.run_dir.recording import checkpoints
from ppo_jax.ppo import population as populations
from ppo_jax.state import Population


class Restored(NamedTuple):
    """A checkpoint of a run."""

    config: Config
    update: int
    population: Population
    lineage: list[dict[str, Any]]
    """Generations up to the checkpoint; empty for a single run."""
    streaks: dict[str, list[int]]
    """Streaks of alerts, as in `Alarms`."""

    @property
    def steps(self) -> int:
        """Environment steps of each member up to the checkpoint."""
        return self.update * self.config.steps_per_update

    @property
    def fittest(self) -> int | None:
        """The fittest member at its last evaluation; None: no evaluation is finite."""
        return fittest(np.asarray(self.population.fitness))


def restore(
    run_dir: Path,
    command: str,
    best: bool = False,
    asked: int | None = None,
    config: Config | None = None,
) -> Restored:
    """Restores the newest checkpoint of a run, the best one, or a requested one.

    A warning says if the structure of the file's experiment has changed since training,
    for example because the file reads other prices.

    Args:
        run_dir: The run's directory.
        command: Name of the program in errors.
        best: Whether to prefer the fittest checkpoint.
        asked: Updates of the only checkpoint to restore; None: any.
        config: The run's experiment, whose numbers the agents get, except those that
            a population searches; None: that of its file.

    Raises:
        ExperimentError: If the directory holds no run, many of them, or one of another
            experiment.
        CheckpointError: If no checkpoint can be restored.
    """
    files.complete(run_dir)
    batched.require_single(run_dir)
    overrides = experiment.stored_overrides(run_dir)
    given = config
    if config is None:
        config = experiment.load(run_dir / script.KEPT, overrides, command)
        _warn_of_changes(run_dir, config)
    else:
        experiment.require_same_structure(run_dir, config)
    lapack.initialize()
    with checkpoints(run_dir) as saved:
        make = functools.partial(training.start, config)
        update, population, meta = saved.read(make, best, asked)
    names = former_names(meta["config"])
    lineage = former.translated(meta["lineage"], names)
    if given is not None:
        population = _with_numbers_of(given, population, meta["config"])
    return Restored(config, update, population, lineage, meta.get("streaks", {}))


def choose(run: Restored, asked: int | None) -> int:
    """Returns the requested member, or the fittest one at its last evaluation.

    If there is neither, it returns member 0; in a population, a warning says so.

    Raises:
        ExperimentError: If there is no such member.
    """
    size = run.population.fitness.size
    if asked is None:
        asked = run.fittest
    if asked is None:
        asked = 0
        if size > 1:
            warn(f"no member has a finite evaluation; it is member 0 of {size}")
    if not 0 <= asked < size:
        raise ExperimentError(f"--member: expected 0 to {size - 1}, got {asked}")
    return asked


def _with_numbers_of(
    config: Config, population: Population, trained: Description
) -> Population:
    """Returns members with the numbers in which an experiment is not as trained.

    Numbers that the population searches stay each member's own.
    """
    changed = differences(as_now(trained), describe(config))
    anew = beginning.shared_numbers(config, changed)
    return populations.with_numbers(population, anew)


def _warn_of_changes(run_dir: Path, config: Config) -> None:
    """Warns if the structure of an experiment has changed since the run was trained."""
    changed = experiment.changed_structure(run_dir, config)
    if changed:
        each = "; ".join(f"{name}: {change}" for name, change in changed.items())
        warn(f"{run_dir}: the experiment is not as it was trained: {each}")

"""Starts a command with many runs, and resumes it with the same options."""

import contextlib
import dataclasses
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from ppo_jax.arrays import devices
from ppo_jax.component import former
from ppo_jax.config import Config
from ppo_jax.host.process.command import warn
from ppo_jax.host.programs import store
from ppo_jax.host.run_dir import claims, experiment, presence, script, storing
from ppo_jax.host.run_dir.ending import recorded
from ppo_jax.host.run_dir.experiment import ExperimentError
from ppo_jax.sweeps import cohorts, settings

Recall = Callable[[Any], None]
"""Sets options to those that are kept in their directory."""


def run(
    command: str,
    options: Any,
    overrides: list[str],
    recall: Recall,
    plan: Callable[..., Any],
    train: Callable[[Any, Any], None],
) -> None:
    """Plans the runs of a command, and trains those that are not finished.

    Args:
        command: Name of the command, for messages.
        options: Options of the command line.
        overrides: Overrides of the experiment's fields.
        recall: Restores the options of a command that is resumed.
        plan: Plans all runs, given an experiment, its names and the options.
        train: Trains a plan, given the options.
    """
    devices.start()
    store.keep()
    if options.resume:
        recall(options)
        overrides = experiment.stored_overrides(options.run_dir)
    with former.understood() if options.resume else contextlib.nullcontext():
        config, names = experiment.load_with_names(
            options.experiment, overrides, f"ppo_jax.{command}"
        )
    with _advised(config):
        planned, path = plan(config, names, options), options.experiment
    if options.resume:
        experiment.require_same(options.run_dir, config)
        settings.require_same(options.run_dir, options.values, planned.values)
        _warn_of_changes(options.run_dir, path)
    else:
        cohorts.require_known(planned.groups)
    options.values = planned.values
    options.run_dir = options.run_dir or experiment.place(path, config)
    with presence.alone(options.run_dir):
        if not options.resume:
            claims.require_new(options.run_dir)
            texts = script.texts(path)
            storing.store(options.run_dir, texts, overrides, config)
        with recorded(options.run_dir) as ending:
            train(options, planned)
            ending.state = "finished"


@contextlib.contextmanager
def _advised(config: Config) -> Iterator[None]:
    """Warns once of what is odd in settings, and not in the experiment itself."""
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always", UserWarning)
        dataclasses.replace(config)
        known = {str(each.message) for each in found}
        yield
    for text in dict.fromkeys(str(each.message) for each in found):
        if text not in known:
            warn(text)


def _warn_of_changes(run_dir: Path, path: Path) -> None:
    """Warns if the code of an experiment has changed since its runs were begun."""
    if names := storing.changed_code(run_dir, script.texts(path)):
        warn(
            f"{run_dir}: goes on with another {', '.join(names)} than it was begun "
            f"with; {run_dir / script.KEPT} goes on as it was"
        )


def require_as_asked(
    called: str, options: Any, overrides: list[str], asked: Any, default: Any
) -> None:
    """Raises an `ExperimentError` if a resumed command is given other options."""
    if options.run_dir is None:
        raise ExperimentError("--resume: expected --run-dir as well")
    given = [f"--{name}" for name in asked if getattr(options, name) != default(name)]
    if given or overrides:
        raise ExperimentError(
            f"--resume: {called} goes on as it was asked for; give "
            f"{' '.join([*given, *overrides])} to another one, in a new --run-dir"
        )

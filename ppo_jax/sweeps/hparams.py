"""Runs of a sweep for tensorboard: each with its setting, its seed and its curve."""

import time
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path

from ppo_jax.host.run_dir.events import Events
from ppo_jax.sweeps import settings
from ppo_jax.sweeps.scores import Score
from ppo_jax.sweeps.settings import Setting

FOLDER = "settings"


def write(
    run_dir: Path, runs: Sequence[Score], found: Sequence[Setting], metric: str
) -> None:
    """Writes events of runs, each into its own folder, and replaces older ones.

    Args:
        run_dir: The directory of the sweep.
        runs: The runs.
        found: All settings.
        metric: The metric by which settings are compared.
    """
    for run in runs:
        given = settings.plain(found[run["setting"]]) | {"seed": run["seed"]}
        home = run_dir / FOLDER / f"{run['setting']}_seed_{run['seed']}"
        with closing(Events(home)) as events:
            events.settings(given, [metric], time.time())
            for name, values in run["evaluations"].items():
                for step, value in zip(run["steps"], values, strict=True):
                    if value is not None:
                        events.numbers(step, time.time(), {name: value})

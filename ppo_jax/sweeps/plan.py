"""What a sweep is to do: settings, the runs of each, and programs that train them."""

import dataclasses
from pathlib import Path
from typing import Any, NamedTuple

from ppo_jax.config import Config
from ppo_jax.envs import check_types
from ppo_jax.host import experiment, files
from ppo_jax.sweeps import cohorts, settings
from ppo_jax.sweeps.cohorts import Member
from ppo_jax.sweeps.settings import Names, Setting

ASKED = ("seeds", "grid", "random", "space", "metric", "sizes")
"""What a sweep remembers of its command line, and how large its batches are."""
KEPT = "sweep.json"


class Plan(NamedTuple):
    """All runs of a sweep."""

    settings: list[Setting]
    groups: list[list[Member]]
    """The runs of each program."""


def plan(config: Config, names: Names, options: Any) -> Plan:
    """The runs that are asked for, of single agents.

    Raises:
        ExperimentError: For settings that cannot be.
        UserError: For an environment that is wrong with one of them.
    """
    found = settings.chosen(config, names, options.grid, options.space, options.random)
    alone = dataclasses.replace(config, pbt=None)
    members = [
        Member(number, alone.seed + seed, settings.apply(alone, setting))
        for number, setting in enumerate(found)
        for seed in range(options.seeds)
    ]
    groups = cohorts.group(members)
    for first, *_ in groups:
        check_types(first.config.env)
    return Plan(found, groups)


def remember(run_dir: Path, options: Any) -> None:
    """Keeps what was asked for."""
    asked = {name: getattr(options, name) for name in ASKED}
    files.write_json(run_dir / KEPT, asked)


def recall(run_dir: Path, options: Any) -> None:
    """Sets the options to what was asked for."""
    stored = experiment.stored(run_dir, KEPT)
    for name in ASKED:
        setattr(options, name, stored[name])

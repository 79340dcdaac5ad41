"""What a sweep is to do: settings, the runs of each, and programs that train them."""

import dataclasses
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NamedTuple

from ppo_jax.config import Config
from ppo_jax.envs import check_types
from ppo_jax.errors import UserError
from ppo_jax.host.run_dir import batched, experiment, files, script
from ppo_jax.sweeps import cohorts, settings
from ppo_jax.sweeps.cohorts import Member
from ppo_jax.sweeps.settings import Names, Setting

ASKED = ("seeds", "grid", "random", "space", "metric", "memory", "sizes")
"""What a sweep remembers of its command line, and how large its batches are."""
KEPT = batched.SWEEP


class Plan(NamedTuple):
    """All runs of a sweep."""

    settings: list[Setting]
    members: list[Member]
    """The runs, as they were asked for."""

    @property
    def groups(self) -> list[list[Member]]:
        """The runs of each program."""
        return cohorts.group(self.members)


def plan(config: Config, names: Names, options: Any) -> Plan:
    """The runs that are asked for, of single agents.

    Raises:
        ExperimentError: For settings that cannot be.
        UserError: For an environment that is wrong with one of them, or too many seeds.
    """
    found = settings.chosen(config, names, options.grid, options.space, options.random)
    alone = dataclasses.replace(config, pbt=None)
    members = [
        Member(number, seed, settings.apply(alone, setting))
        for number, setting in enumerate(found)
        for seed in cohorts.seeds(alone, options.seeds)
    ]
    return _checked(Plan(found, members))


def of(configs: Sequence[Config]) -> Plan:
    """The runs that experiments are; those that differ in their seeds share a setting.

    Raises:
        UserError: For an environment that is wrong.
    """
    found = settings.apart(configs)
    distinct = [setting for i, setting in enumerate(found) if setting not in found[:i]]
    members = [
        Member(distinct.index(setting), config.seed, cohorts.with_seed(config, 0))
        for config, setting in zip(configs, found, strict=True)
    ]
    return _checked(Plan(distinct, members))


def require_told_apart(planned: Plan) -> None:
    """Checks that a directory can tell experiments of Python apart.

    Raises:
        UserError: If two of a setting differ in more than their seeds.
    """
    first: dict[int, int] = {}
    for index, member in enumerate(planned.members):
        before = first.setdefault(member.setting, index)
        if not cohorts.alike(planned.members[before], member):
            raise UserError(
                f"configs[{before}] and configs[{index}] differ in what no field says, "
                "such as a function or a class whose name both have, so that no "
                "directory tells them apart; give it names, or both the same one"
            )


def runs(planned: Plan) -> list[list[int]]:
    """The setting and the seed of each run, as they were asked for."""
    return [[member.setting, member.seed] for member in planned.members]


def made(planned: Plan) -> dict[str, Any]:
    """What a sweep remembers of experiments of Python."""
    plain = [settings.plain(setting) for setting in planned.settings]
    return {"settings": plain, "runs": runs(planned)}


def asked(options: Any) -> dict[str, Any]:
    """What a sweep remembers of its command line."""
    return {name: getattr(options, name) for name in ASKED}


def remember(run_dir: Path, what: Mapping[str, Any]) -> None:
    """Keeps what was asked for."""
    files.write_json(run_dir / KEPT, what)


def recall(run_dir: Path) -> dict[str, Any]:
    """What was asked for."""
    return {"memory": None} | experiment.stored(run_dir, KEPT)


def again(run_dir: Path, command: str) -> Plan:
    """The plan of a sweep that there is, whoever has made it.

    Raises:
        ExperimentError: If there is none.
    """
    kept, overrides = recall(run_dir), experiment.stored_overrides(run_dir)
    config, names = experiment.load_with_names(
        run_dir / script.KEPT, overrides, command
    )
    if "runs" in kept:
        return of(names["configs"])
    return plan(config, names, SimpleNamespace(**kept))


def _checked(planned: Plan) -> Plan:
    for first, *_ in planned.groups:
        check_types(first.config.env)
    return planned

"""Plan of a sweep: settings, the runs of each, and the programs that train them."""

import dataclasses
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NamedTuple

from ppo_jax.config import Config
from ppo_jax.envs import check_types
from ppo_jax.errors import UserError
from ppo_jax.host.run_dir import batched, experiment, files, script
from ppo_jax.host.run_dir.description import Description
from ppo_jax.host.run_dir.experiment import ExperimentError
from ppo_jax.sweeps import cohorts, settings
from ppo_jax.sweeps.cohorts import Member
from ppo_jax.sweeps.settings import Names, Setting

ASKED = ("seeds", "grid", "random", "space", "metric", "memory", "sizes", "values")
"""Options of the command line, sizes of batches, and values that a sweep keeps."""
KEPT = batched.SWEEP


class Plan(NamedTuple):
    """Settings and runs of a sweep."""

    settings: list[Setting]
    members: list[Member]
    """The runs, in the order in which they were asked for."""

    @property
    def groups(self) -> list[list[Member]]:
        """The runs of each program."""
        return cohorts.group(self.members)

    @property
    def values(self) -> list[Description]:
        """The fields that each setting gives."""
        configs = {member.setting: member.config for member in self.members}
        return settings.described(self.settings, configs)


def plan(config: Config, names: Names, options: Any) -> Plan:
    """Plans the runs that the options ask for, all of single agents.

    Raises:
        ExperimentError: For settings that are not possible.
        UserError: For an environment that is wrong with one of them, or too many seeds.
    """
    found = settings.chosen(config, names, options.grid, options.space, options.random)
    if any(path.partition(".")[0] == "pbt" for setting in found for path in setting):
        expected = "expected no population, as a sweep trains single agents"
        raise ExperimentError(f"pbt: {expected}; ppo_jax.train trains one")
    alone = dataclasses.replace(config, pbt=None)
    members = [
        Member(number, seed, settings.apply(alone, setting))
        for number, setting in enumerate(found)
        for seed in cohorts.seeds(alone, options.seeds)
    ]
    return _checked(Plan(found, members))


def of(configs: Sequence[Config]) -> Plan:
    """Plans a run for each experiment; runs that differ only in seeds share a setting.

    Raises:
        UserError: If an environment is wrong.
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
        UserError: If two experiments of a setting differ in more than their seeds.
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
    """Returns the setting and the seed of each run, in the order of `members`."""
    return [[member.setting, member.seed] for member in planned.members]


def made(planned: Plan) -> dict[str, Any]:
    """Returns the settings and runs that a sweep of experiments from Python keeps."""
    plain = [settings.plain(setting) for setting in planned.settings]
    return {"settings": plain, "runs": runs(planned)}


def asked(options: Any) -> dict[str, Any]:
    """Returns the options of the command line that a sweep keeps."""
    return {name: getattr(options, name) for name in ASKED}


def remember(run_dir: Path, what: Mapping[str, Any]) -> None:
    """Writes the result of `made` or `asked` to the directory of a sweep."""
    files.write_json(run_dir / KEPT, what)


def recall(run_dir: Path) -> dict[str, Any]:
    """Reads the plan's data that `remember` wrote to the directory of a sweep."""
    return {"memory": None, "values": None} | experiment.stored(run_dir, KEPT)


def again(run_dir: Path, command: str) -> Plan:
    """Returns the plan of an existing sweep, of the command or of Python.

    Raises:
        ExperimentError: If there is no sweep.
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

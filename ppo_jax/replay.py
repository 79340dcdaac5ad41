"""Trains one agent on the schedule of numbers that a member of a population had.

Which numbers were in force when, along the member's ancestry, is read from the lineage;
weights, optimiser and environments are the agent's own from its first update on. Phases
are as long as wished, or shorter, so that numbers change between two of them. Other
options are fields of the config, such as --seed 7.

Exit status: as that of train.

Example:
    python -m ppo_jax.replay runs/population --seed 7 --to runs/replay
"""

import argparse
import dataclasses
import functools
import json
import math
import sys
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

from ppo_jax import component
from ppo_jax.arrays import devices
from ppo_jax.config import Config
from ppo_jax.host.agents import fitting, runs
from ppo_jax.host.loop import training
from ppo_jax.host.loop.conclusion import conclude
from ppo_jax.host.loop.training import Steer
from ppo_jax.host.process import command
from ppo_jax.host.process.console import Console, verbosity
from ppo_jax.host.programs import store
from ppo_jax.host.run_dir import claims, experiment, lineage, presence, script, storing
from ppo_jax.host.run_dir.lineage import Schedule
from ppo_jax.host.run_dir.names import SCHEDULE
from ppo_jax.host.run_dir.overrides import with_overrides, without
from ppo_jax.host.run_dir.recording import Folder
from ppo_jax.ppo import population as populations

ALONE = b"""

# One agent, on the schedule of a member of that population.
import dataclasses  # noqa: E402

config = dataclasses.replace(config, pbt=None)
"""


@command.entrance
def main(argv: list[str] | None = None) -> int:
    """Replays a schedule; returns the exit status."""
    options, overrides = command.parse_with_fields(_parser(), argv)
    if options.resume:
        _require_as_asked(options, overrides)
    devices.start()
    store.keep()
    run_dir = options.to or options.run_dir / "replay"
    again = command.typed("replay", options.run_dir, "--to", run_dir, "--resume")
    # Where there is no run, nothing is made.
    experiment.stored_overrides(run_dir if options.resume else options.run_dir)
    keep = claims.require_begun
    if not options.resume:
        claims.require_new(run_dir)
        keep = _asked(options.run_dir, options.member, overrides)
    with presence.alone(run_dir):
        keep(run_dir)
        more = overrides if options.resume else []
        return _train(run_dir, options, more, f"go on with: {again}")


def _parser() -> argparse.ArgumentParser:
    parser = command.parser("replay", __doc__)
    command.add_run(parser)
    parser.add_argument("--member", type=int, help="whose schedule (default: the best)")
    parser.add_argument(
        "--to", type=Path, help="where the agent goes (default: RUN_DIR/replay)"
    )
    parser.add_argument("--resume", action="store_true", help="go on with it")
    command.add_verbosity_options(parser)
    return parser


def _require_as_asked(options: Any, overrides: list[str]) -> None:
    """Raises an `ExperimentError` if what goes on is asked for something else."""
    member = [] if options.member is None else ["--member"]
    others = functools.reduce(without, experiment.FREE, overrides)
    if given := [*member, *others]:
        raise experiment.ExperimentError(
            "--resume: a replay goes on as it was asked for; give "
            f"{' '.join(given)} to another one, with a new --to"
        )


def _asked(
    source: Path, asked: int | None, overrides: list[str]
) -> Callable[[Path], None]:
    """Returns what makes a run directory: of one agent, with its schedule."""
    given = without(experiment.stored_overrides(source), "pbt") + overrides
    run = runs.restore(source, "ppo_jax.replay")
    if not run.lineage:
        raise experiment.ExperimentError(f"{source}: is no run of a population")
    member = runs.choose(run, asked)
    print(f"the schedule of member {member} of {run.population.fitness.size}")
    path = source / script.KEPT
    with warnings.catch_warnings(action="ignore"):  # The experiment has warned.
        alone = dataclasses.replace(run.config, pbt=None)
    config = with_overrides(alone, path, overrides, "ppo_jax.replay")
    fitting.check(config)
    schedule = lineage.schedule(run.lineage, member)
    _require_free(schedule, alone, config)
    texts = script.texts(path)
    texts[script.KEPT] += ALONE
    texts[SCHEDULE] = (json.dumps(schedule, indent=2) + "\n").encode()

    def keep(run_dir: Path) -> None:
        claims.require_new(run_dir)
        storing.store(run_dir, texts, given, config)

    return keep


def _require_free(schedule: Schedule, given: Config, asked: Config) -> None:
    """Raises an `ExperimentError` if numbers of a schedule are to be others."""
    before, now = component.numbers(given), component.numbers(asked)
    for path in schedule[0][1]:
        if now.get(path) != before[path]:
            raise experiment.ExperimentError(
                f"{path}: follows the member's schedule, so it can be no other: "
                f"{before[path]} -> {now.get(path)}"
            )


def _train(run_dir: Path, options: Any, more: list[str], hint: str) -> int:
    """Trains the agent on the schedule of its directory, with more options."""
    overrides = experiment.stored_overrides(run_dir) + more
    config = experiment.load(run_dir / script.KEPT, overrides, "ppo_jax.replay")
    schedule = experiment.stored(run_dir, SCHEDULE, list)

    def follow(population: Any, done: int) -> Any:
        return populations.with_numbers(population, lineage.in_force(schedule, done))

    steer = Steer(follow, math.gcd(*(update for update, _ in schedule)))
    shown = verbosity(options)
    keep = functools.partial(storing.store_options, run_dir, overrides, config)
    record, console = Folder(run_dir, options.resume, keep), Console(shown)
    ended = training.train(config, record, console, hint, steer=steer)
    return conclude(ended.ending, hint, config, run_dir, shown)


if __name__ == "__main__":
    sys.exit(main())

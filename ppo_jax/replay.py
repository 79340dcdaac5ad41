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
import json
import math
import sys
from pathlib import Path
from typing import Any

from ppo_jax.arrays import devices
from ppo_jax.component import former
from ppo_jax.host.agents import fitting, runs
from ppo_jax.host.loop import training
from ppo_jax.host.loop.conclusion import conclude
from ppo_jax.host.loop.training import Steer
from ppo_jax.host.process import command
from ppo_jax.host.process.console import Console, verbosity
from ppo_jax.host.programs import store
from ppo_jax.host.run_dir import claims, experiment, files, lineage, presence, script
from ppo_jax.host.run_dir.names import SCHEDULE
from ppo_jax.host.run_dir.overrides import without
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
    experiment.stored_overrides(run_dir if options.resume else options.run_dir)
    files.require_folder(run_dir)
    with presence.alone(run_dir):
        if not options.resume:
            _record(options.run_dir, options.member, run_dir, overrides)
        return _train(run_dir, options, f"go on with: {again}")


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
    if given := [*member, *overrides]:
        raise experiment.ExperimentError(
            "--resume: a replay goes on as it was asked for; give "
            f"{' '.join(given)} to another one, with a new --to"
        )


def _record(
    source: Path, asked: int | None, run_dir: Path, overrides: list[str]
) -> None:
    """Makes a run directory: the experiment of one agent, and its schedule."""
    claims.require_new(run_dir)
    given = without(experiment.stored_overrides(source), "pbt") + overrides
    run = runs.restore(source, "ppo_jax.replay")
    if not run.lineage:
        raise experiment.ExperimentError(f"{source}: is no run of a population")
    member = runs.choose(run, asked)
    print(f"the schedule of member {member} of {run.population.fitness.size}")
    texts = script.texts(source / script.KEPT)
    texts[script.KEPT] += ALONE
    options = json.dumps(given).encode()
    experiment.keep(run_dir, {experiment.OVERRIDES: options} | texts)
    with former.understood():
        config = experiment.load(run_dir / script.KEPT, given, "ppo_jax.replay")
    fitting.check(config)
    schedule = lineage.schedule(run.lineage, member)
    texts[SCHEDULE] = (json.dumps(schedule, indent=2) + "\n").encode()
    experiment.store(run_dir, texts, given, config)


def _train(run_dir: Path, options: Any, hint: str) -> int:
    """Trains the agent on the schedule of its directory."""
    overrides = experiment.stored_overrides(run_dir)
    config = experiment.load(run_dir / script.KEPT, overrides, "ppo_jax.replay")
    schedule = experiment.stored(run_dir, SCHEDULE, list)

    def follow(population: Any, done: int) -> Any:
        return populations.with_numbers(population, lineage.in_force(schedule, done))

    steer = Steer(follow, math.gcd(*(update for update, _ in schedule)))
    shown = verbosity(options)
    record, console = Folder(run_dir, options.resume), Console(shown)
    ended = training.train(config, record, console, hint, steer=steer)
    return conclude(ended.ending, hint, config, run_dir, shown)


if __name__ == "__main__":
    sys.exit(main())

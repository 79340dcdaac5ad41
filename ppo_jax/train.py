"""Trains the agent of an experiment, or its population.

All that a run needs to be resumed, evaluated and moved is kept in its directory, and
at its end a page about it, report.html.

Exit status: 0, finished, or stopped by --stop-at or --max-seconds. 2, the experiment,
an option or the run directory is wrong. 3, the run failed, for the cause printed. 4,
nothing came back for too long. 5, another process of the job has ended. 130,
interrupted. A run that was saved once can be resumed after each of them.

Example:
    python -m ppo_jax.train experiments/cartpole.py --run-dir runs/cartpole
"""

import argparse
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

from ppo_jax.arrays import devices
from ppo_jax.component import former
from ppo_jax.config import Config
from ppo_jax.errors import UserError
from ppo_jax.host.agents import fitting
from ppo_jax.host.loop import beginning, training
from ppo_jax.host.loop.conclusion import conclude
from ppo_jax.host.process import command, distributed
from ppo_jax.host.process.console import Console, verbosity
from ppo_jax.host.process.exits import Exit
from ppo_jax.host.programs import store
from ppo_jax.host.run_dir import claims, experiment, lineage, presence, script, storing
from ppo_jax.host.run_dir.overrides import given
from ppo_jax.host.run_dir.recording import Folder
from ppo_jax.reports import making

Prepared = tuple[Folder, Config]
"""Record of a run in whose directory nobody else is at work, and its experiment."""


@command.entrance
def main(argv: list[str] | None = None) -> int:
    """Trains an experiment; returns the exit status."""
    options, overrides = command.parse_with_fields(_parser(), argv)
    return _train(options.experiment, options, overrides)


def _parser() -> argparse.ArgumentParser:
    parser = command.parser("train", __doc__)
    command.add_experiment(parser)
    parser.add_argument(
        "--run-dir",
        type=Path,
        help="where the run goes (default: runs/<experiment>__<seed>__<time>)",
    )
    parser.add_argument(
        "--resume", action="store_true", help="go on with the run in --run-dir"
    )
    parser.add_argument(
        "--warm-start",
        type=Path,
        metavar="RUN_DIR",
        help="begin with what the agent of another run has learned; of a population, "
        "its fittest member",
    )
    parser.add_argument(
        "--warm-optimizer",
        action="store_true",
        help="begin with the state of its optimiser too",
    )
    parser.add_argument(
        "--no-report", action="store_true", help="leave no page about the run"
    )
    command.add_verbosity_options(parser)
    job = parser.add_argument_group(
        "one job of several processes",
        "each is started with the same arguments and --run-dir",
    )
    job.add_argument("--coordinator", metavar="HOST:PORT", help="where process 0 is")
    job.add_argument("--num-processes", type=int, metavar="N", help="how many")
    job.add_argument("--process-id", type=int, metavar="I", help="which one, from 0")
    job.add_argument(
        "--cluster",
        action="store_true",
        help="find all that in the environment (SLURM, Open MPI, TPU pods)",
    )
    return parser


def _train(path: Path, options: Any, overrides: list[str]) -> int:
    _require_fitting(options)
    _start(options)
    shown = verbosity(options)
    console = Console(shown)
    prepared = _old_run if options.resume else _new_run
    with prepared(path, options, overrides, console) as (record, config):
        run_dir = record.run_dir
        again = command.typed("train", path, "--run-dir", run_dir, "--resume")
        hint = f"go on with: {again}"
        ending = training.train(config, record, console, hint).ending
    if not distributed.is_first():
        return Exit[ending.upper()]
    page = None if options.no_report else making.leave(run_dir)
    return conclude(ending, hint, config, run_dir, shown, page)


def _require_fitting(options: Any) -> None:
    """Raises a `UserError` for options that do not go together."""
    if options.resume and options.run_dir is None:
        raise UserError("--resume: expected --run-dir as well")
    if options.warm_optimizer and options.warm_start is None:
        raise UserError("--warm-optimizer: expected --warm-start as well")
    if options.resume and options.warm_start is not None:
        message = "a run that is resumed has begun; give one of both"
        raise UserError(f"--warm-start: {message}")


def _start(options: Any) -> None:
    """Makes JAX ready: its devices, and the processes of the job.

    These wait for each other, so all of them compile: one that had kept its programs
    would wait too long for one that has not.
    """
    devices.prepare()
    place = (options.coordinator, options.num_processes, options.process_id)
    if options.cluster or place != (None, None, None):
        if options.run_dir is None:
            raise distributed.JobError(
                "--run-dir: expected, and the same for all processes"
            )
        distributed.join(*place)
    else:
        store.keep()
    devices.start()


@contextmanager
def _new_run(
    path: Path, options: Any, overrides: list[str], console: Console
) -> Iterator[Prepared]:
    config = experiment.load(path, overrides)
    fitting.check(config)
    for number in given(overrides, beginning.searched(config)):
        console.note(f"{number}: is given, but each member draws its own")
    first = None
    if options.warm_start is not None:
        agent = fitting.load(options.warm_start)
        first = fitting.begun(config, agent, options.warm_optimizer, console)
    run_dir = options.run_dir or experiment.place(path, config)

    texts = script.texts(path)

    def keep() -> None:
        if first is not None:
            return first.keep(run_dir, texts, overrides)
        claims.require_new(run_dir)
        storing.store(run_dir, texts, overrides, config)

    with presence.alone(run_dir):
        distributed.first_only(keep)
        yield Folder(run_dir, resumes=first is not None), config


@contextmanager
def _old_run(
    path: Path, options: Any, overrides: list[str], console: Console
) -> Iterator[Prepared]:
    run_dir = options.run_dir
    experiment.stored_description(run_dir)  # Where no run is, nothing is made.
    with presence.alone(run_dir):
        lineage.require_unscheduled(run_dir)
        distributed.first_only(partial(claims.require_begun, run_dir))
        overrides = experiment.stored_overrides(run_dir) + overrides
        with former.understood():
            config = experiment.load(path, overrides)
        fitting.check(config)
        experiment.require_same_structure(run_dir, config)
        kept = run_dir, script.texts(path), overrides, config
        keep = partial(storing.store_again, *kept, console.note)
        yield Folder(run_dir, True, keep), config


if __name__ == "__main__":
    sys.exit(main())

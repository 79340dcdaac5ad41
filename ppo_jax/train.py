"""Trains the agent of an experiment, or its population.

All that a run needs to be resumed, evaluated and moved is kept in its directory.

Exit status: 0, finished. 2, the experiment, an option or the run directory is wrong.
3, the run failed, for the cause printed. 4, nothing came back for too long. 5, another
process of the job has ended. 130, interrupted. A run that was saved once can be resumed
after each of them.

Example:
    python -m ppo_jax.train experiments/cartpole.py --run-dir runs/cartpole
"""

import argparse
import sys
from pathlib import Path
from typing import Any

from ppo_jax import envs
from ppo_jax.component import former
from ppo_jax.errors import UserError
from ppo_jax.host import (
    command,
    distributed,
    experiment,
    programs,
    script,
    training,
)
from ppo_jax.host.conclusion import conclude
from ppo_jax.host.console import verbosity
from ppo_jax.host.exits import Exit


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
    _start(options)
    prepare = _old_run if options.resume else _new_run
    run_dir, config = prepare(path, options.run_dir, overrides)
    hint = f"go on with: python -m ppo_jax.train {path} --run-dir {run_dir} --resume"
    shown = verbosity(options)
    ending = training.train(config, run_dir, options.resume, hint, shown)
    if not distributed.is_first():
        return Exit[ending.upper()]
    return conclude(ending, hint, config, run_dir, shown)


def _start(options: Any) -> None:
    """Makes JAX ready: its devices, and the processes of the job.

    These wait for each other, so all of them compile: one that had kept its programs
    would wait too long for one that has not.
    """
    distributed.prepare()
    place = (options.coordinator, options.num_processes, options.process_id)
    if options.cluster or place != (None, None, None):
        if options.run_dir is None:
            raise distributed.JobError(
                "--run-dir: expected, and the same for all processes"
            )
        distributed.join(*place)
    else:
        programs.keep()


def _new_run(path: Path, run_dir: Any, overrides: list[str]) -> tuple[Path, Any]:
    config = experiment.load(path, overrides)
    envs.check_types(config.env)
    created = distributed.first_only(
        lambda: experiment.create(run_dir, path, overrides, config)
    )
    return created or run_dir, config


def _old_run(
    path: Path, run_dir: Path | None, overrides: list[str]
) -> tuple[Path, Any]:
    if run_dir is None:
        raise UserError("--resume: expected --run-dir as well")
    overrides = experiment.stored_overrides(run_dir) + overrides
    with former.understood():
        config = experiment.load(path, overrides)
    envs.check_types(config.env)
    experiment.require_same_structure(run_dir, config)
    distributed.first_only(
        lambda: experiment.store(run_dir, script.texts(path), overrides, config)
    )
    return run_dir, config


if __name__ == "__main__":
    sys.exit(main())

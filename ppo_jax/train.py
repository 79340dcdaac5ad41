"""`python -m ppo_jax.train EXPERIMENT [--run-dir DIR] [--resume] [--FIELD VALUE …]`."""

import argparse
import sys
from pathlib import Path
from typing import Any

from ppo_jax import command
from ppo_jax.errors import UserError

USAGE = """\
usage: python -m ppo_jax.train EXPERIMENT [--run-dir DIR] [--resume] [--FIELD VALUE ...]

  EXPERIMENT   a Python file with a Config named `config`
  --run-dir    where the run goes (default: runs/<experiment>__<seed>__<time>)
  --resume     go on with the run in --run-dir
  --quiet      show warnings and errors only; --verbose: a line for every phase
  --FIELD      any field of the config; `EXPERIMENT --help` lists them

One job of several processes; each is started with the same arguments and --run-dir:
  --coordinator HOST:PORT --num-processes N --process-id I
  --cluster    the same, found in the environment (SLURM, Open MPI, TPU pods)
"""


@command.entrance
def main(argv: list[str] | None = None) -> int:
    """Trains an experiment; returns the exit status.

    0: finished. 2: the experiment, an option or the run directory is wrong. 3: the run
    failed, for the cause printed. 4: nothing came back for too long. 5: another process
    of the job has ended. 130: interrupted. A run that was saved once can be resumed
    after each of them.
    """
    argv = sys.argv[1:] if argv is None else argv
    if not argv or argv[0].startswith("-"):
        print(USAGE, end="")
        return 0 if argv[:1] in (["--help"], ["-h"]) else 2
    parser = argparse.ArgumentParser(add_help=False, allow_abbrev=False)
    parser.add_argument("--run-dir", type=Path)
    parser.add_argument("--resume", action="store_true")
    parser.add_argument("--coordinator")
    parser.add_argument("--num-processes", type=int)
    parser.add_argument("--process-id", type=int)
    parser.add_argument("--cluster", action="store_true")
    command.add_verbosity_options(parser)
    options, overrides = parser.parse_known_args(argv[1:])
    return _train(Path(argv[0]), options, overrides)


def _train(path: Path, options: Any, overrides: list[str]) -> int:
    from ppo_jax import job, training
    from ppo_jax.conclusion import conclude
    from ppo_jax.console import verbosity

    _start(options)
    prepare = _old_run if options.resume else _new_run
    run_dir, config = prepare(path, options.run_dir, overrides)
    hint = f"go on with: python -m ppo_jax.train {path} --run-dir {run_dir} --resume"
    shown = verbosity(options)
    ending = training.train(config, run_dir, options.resume, hint, shown)
    if not job.is_first():
        return command.EXIT_STATUS[ending]
    return conclude(ending, hint, config, run_dir, shown)


def _start(options: Any) -> None:
    """Makes JAX ready: its devices, and the processes of the job."""
    from ppo_jax import job

    job.prepare()
    place = (options.coordinator, options.num_processes, options.process_id)
    if options.cluster or place != (None, None, None):
        if options.run_dir is None:
            raise job.JobError("--run-dir: expected, and the same for all processes")
        job.join(*place)


def _new_run(path: Path, run_dir: Any, overrides: list[str]) -> tuple[Path, Any]:
    from ppo_jax import envs, experiment, job

    config = experiment.load(path, overrides)
    envs.check_types(config.env)
    created = job.first_only(
        lambda: experiment.create(run_dir, path, overrides, config)
    )
    return created or run_dir, config


def _old_run(
    path: Path, run_dir: Path | None, overrides: list[str]
) -> tuple[Path, Any]:
    from ppo_jax import envs, experiment, job, script

    if run_dir is None:
        raise UserError("--resume: expected --run-dir as well")
    overrides = experiment.stored_overrides(run_dir) + overrides
    config = experiment.load(path, overrides)
    envs.check_types(config.env)
    experiment.require_same_structure(run_dir, config)
    job.first_only(
        lambda: experiment.store(run_dir, script.texts(path), overrides, config)
    )
    return run_dir, config


if __name__ == "__main__":
    sys.exit(main())

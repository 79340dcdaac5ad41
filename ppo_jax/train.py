"""`python -m ppo_jax.train EXPERIMENT [--run-dir DIR] [--resume] [--FIELD VALUE …]`."""

import argparse
import sys
import time
from pathlib import Path

USAGE = """\
usage: python -m ppo_jax.train EXPERIMENT [--run-dir DIR] [--resume] [--FIELD VALUE ...]

  EXPERIMENT   a Python file with a Config named `config`
  --run-dir    where the run goes (default: runs/<experiment>__<seed>__<time>)
  --resume     go on with the run in --run-dir
  --FIELD      any field of the config; `EXPERIMENT --help` lists them
"""


def main(argv: list[str] | None = None) -> int:
    """Trains an experiment; returns the exit status.

    0: finished. 2: the experiment or an option is wrong. 3: the run failed, for the
    cause printed. 130: interrupted, and resumable.
    """
    argv = sys.argv[1:] if argv is None else argv
    if not argv or argv[0].startswith("-"):
        print(USAGE, end="")
        return 0 if argv[:1] in (["--help"], ["-h"]) else 2
    parser = argparse.ArgumentParser(add_help=False, allow_abbrev=False)
    parser.add_argument("--run-dir", type=Path)
    parser.add_argument("--resume", action="store_true")
    options, overrides = parser.parse_known_args(argv[1:])
    from ppo_jax.experiment import ExperimentError

    try:
        return _train(Path(argv[0]), options.run_dir, options.resume, overrides)
    except ExperimentError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2


def _train(path: Path, run_dir: Path | None, resume: bool, overrides: list[str]) -> int:
    from ppo_jax import experiment, training

    changed = {}
    if resume:
        if run_dir is None:
            raise experiment.ExperimentError("--resume: expected --run-dir as well")
        overrides = experiment.stored_overrides(run_dir) + overrides
        config = experiment.load(path, overrides)
        changed = experiment.differences(run_dir, config)
        for name, change in changed.items():
            print(f"resuming with another {name}: {change}")
    else:
        config = experiment.load(path, overrides)
        stamp = time.strftime("%Y%m%d-%H%M%S")
        run_dir = run_dir or Path("runs") / f"{path.stem}__{config.seed}__{stamp}"
        if (run_dir / "config.json").exists():
            raise experiment.ExperimentError(
                f"{run_dir}: holds a run already; give --resume to go on with it, "
                "or another --run-dir"
            )
    experiment.store(run_dir, path, overrides, config)
    try:
        ending, evaluation = training.train(config, run_dir, resume, changed)
    except FileNotFoundError as error:
        raise experiment.ExperimentError(str(error)) from error
    print(f"{ending}: evaluation {evaluation['mean']:.1f} ± {evaluation['std']:.1f}")
    if ending == "failed":
        print(
            f"error: {config.max_failures} updates in a row had no finite optimiser "
            f"step; error/* in {run_dir / 'metrics.jsonl'} says why",
            file=sys.stderr,
        )
    if ending == "interrupted":
        print(
            f"go on with: python -m ppo_jax.train {path} --run-dir {run_dir} --resume"
        )
    return {"finished": 0, "failed": 3, "interrupted": 130}[ending]


if __name__ == "__main__":
    sys.exit(main())

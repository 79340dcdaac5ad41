"""Trains an experiment with many settings and seeds, and compares the settings.

All that share a structure are trained in one program. Values are Python, as in the
experiment's file. Fields are the same for all; of an experiment with a population, the
single run is swept.

Exit status: 0, finished. 2, the experiment, an option or the directory is wrong. 3, the
disk took nothing more. 4, nothing came back for too long. 130, interrupted. A sweep
goes on with --resume after the last three.

Example:
    python -m ppo_jax.sweep experiments/cartpole.py --seeds 5 --grid num_epochs=4,8
"""

import argparse
import functools
import sys
from pathlib import Path
from typing import Any

from ppo_jax.host.metrics.rows import EVALUATIONS
from ppo_jax.host.process import command
from ppo_jax.host.process.console import Console, verbosity
from ppo_jax.host.process.exits import Exit
from ppo_jax.host.run_dir import batched
from ppo_jax.host.run_dir.experiment import ExperimentError
from ppo_jax.host.run_dir.names import RESULTS
from ppo_jax.sweeps import batches, going, plan, running, scores
from ppo_jax.sweeps.plan import Plan

METRICS = [name for name in EVALUATIONS if name != "eval/std_reward"]
"""Metrics of which more is better."""


@command.entrance
def main(argv: list[str] | None = None) -> int:
    """Sweeps an experiment; returns the exit status."""
    options, overrides = command.parse_with_fields(_parser(), argv)
    command.require(options.seeds >= 1, "--seeds", options.seeds, "at least 1")
    command.require(options.random >= 0, "--random", options.random, "at least 0")
    enough = options.memory is None or options.memory > 0
    command.require(enough, "--memory", options.memory, "a number of MiB > 0")
    known = options.metric in METRICS
    command.require(known, "--metric", repr(options.metric), ", ".join(METRICS))
    return _sweep(options, overrides)


def _parser() -> argparse.ArgumentParser:
    parser = command.parser("sweep", __doc__)
    command.add_experiment(parser)
    lists = {"nargs": "+", "action": "extend", "default": []}
    parser.add_argument(
        "--seeds", type=int, default=1, help="runs of each setting (default: 1)"
    )
    parser.add_argument(
        "--grid", **lists, metavar="PATH=VALUE,VALUE", help="all combinations of values"
    )
    parser.add_argument(
        "--random", type=int, default=0, help="settings to draw for each of the grid"
    )
    parser.add_argument(
        "--space",
        **lists,
        metavar="PATH=RANGE",
        help="what to draw from, `gamma=Uniform(0.9, 1.0)` or `num_epochs=4,8` "
        "(default: the space of the experiment's population)",
    )
    parser.add_argument(
        "--metric", default="eval/mean_reward", help="score, of the last evaluation"
    )
    parser.add_argument(
        "--memory", type=float, help="MiB to use (default: 80 %% of the device's)"
    )
    parser.add_argument("--run-dir", type=Path, help="where the sweep goes")
    parser.add_argument("--resume", action="store_true", help="go on with --run-dir")
    command.add_verbosity_options(parser)
    parser.set_defaults(sizes=[], values=None)
    return parser


def _sweep(options: Any, overrides: list[str]) -> int:
    """Plans, trains batch after batch, and prints the table."""

    def recall(options: Any) -> None:
        default = _parser().get_default
        going.require_as_asked("a sweep", options, overrides, plan.ASKED, default)
        _recall(options)

    going.run("sweep", options, overrides, recall, plan.plan, _train)
    return Exit.FINISHED


def _train(options: Any, planned: Plan) -> None:
    """Trains all that is not finished, in batches that fit, and prints the table."""
    run_dir, metric = options.run_dir, options.metric
    print(
        f"{len(planned.members)} runs: {len(planned.settings)} settings x "
        f"{options.seeds} seeds, programs to compile: {len(planned.groups)}"
    )

    def remember(sizes: list[int]) -> None:
        options.sizes = sizes
        plan.remember(run_dir, plan.asked(options))

    given = options.sizes, options.memory
    sizes = batches.sizes(planned.groups, *given, print, remember)
    again = command.typed("sweep", options.experiment, "--run-dir", run_dir, "--resume")
    consoles = functools.partial(Console, verbosity(options))
    runs, rows = running.train(
        run_dir, planned, sizes, metric, f"go on with: {again}", consoles
    )
    print(f"\n{metric}, last evaluation\n\n{scores.markdown(rows)}")
    failed = sum(run["ending"] == "failed" for run in runs)
    print(f"{len(runs)} runs in {run_dir / RESULTS}, {failed} failed")


def _recall(options: Any) -> None:
    """Sets the options to what the sweep was asked for."""
    asked = plan.recall(options.run_dir)
    if "runs" in asked:
        raise ExperimentError(
            f"{options.run_dir}: a sweep of Python, which goes on there: "
            f"{batched.call(options.run_dir)}"
        )
    for name in plan.ASKED:
        setattr(options, name, asked[name])


if __name__ == "__main__":
    sys.exit(main())

"""Trains trading agents fold after fold, and tests them on what comes after.

Folds, seeds and the numbers of --grid are members of one program. An agent is what it
was when it earned most on the validation of its fold; the bars of a test are seen by
nobody before. Tests follow each other, and are one track per seed, which is compared
with what needs no learning and with the same agents without their terms about risk. Of
an experiment with a population, each fold, seed and setting has one of its own.

Exit status: 0, finished. 2, the experiment, an option or the directory is wrong. 3, the
disk took nothing more. 4, nothing came back for too long. 130, interrupted. It goes on
with --resume after the last three.

Example:
    python -m ppo_jax.walkforward experiments/trading.py --seeds 20 --grid env.cost=1,10
"""

import argparse
import functools
import sys
from pathlib import Path
from typing import Any

from ppo_jax.backtests import keeping, plan, results, walking
from ppo_jax.backtests.folds import Shape
from ppo_jax.backtests.plan import Plan
from ppo_jax.host.process import command
from ppo_jax.host.process.console import Console, verbosity
from ppo_jax.host.process.exits import Exit
from ppo_jax.host.run_dir.names import BACKTEST, BACKTEST_PAGE
from ppo_jax.sweeps import batches, going

MEANING = {
    "folds": "how many tests, one after the other",
    "train": "bars of the first fold's training",
    "validation": "bars by which checkpoints are chosen",
    "purge": "bars left out before a validation",
    "embargo": "bars left out before a test",
}


@command.entrance
def main(argv: list[str] | None = None) -> int:
    """Walks an experiment forward; returns the exit status."""
    options, overrides = command.parse_with_fields(_parser(), argv)
    command.require(options.seeds >= 1, "--seeds", options.seeds, "at least 1")
    command.require(options.trials >= 0, "--trials", options.trials, "at least 0")
    enough = options.memory is None or options.memory > 0
    command.require(enough, "--memory", options.memory, "a number of MiB > 0")
    return _walk(options, overrides)


def _parser() -> argparse.ArgumentParser:
    parser = command.parser("walkforward", __doc__)
    command.add_experiment(parser)
    for name, meaning in MEANING.items():
        default = Shape._field_defaults[name]
        about = f"{meaning} (default: {default})"
        parser.add_argument(f"--{name}", type=int, default=default, help=about)
    parser.add_argument(
        "--rolling", action="store_true", help="train on the last --train bars alone"
    )
    parser.add_argument(
        "--seeds", type=int, default=4, help="agents of each setting (default: 4)"
    )
    parser.add_argument(
        "--trials",
        type=int,
        default=0,
        help="agents that you tested elsewhere: the deflated Sharpe ratio counts them",
    )
    parser.add_argument(
        "--grid",
        nargs="+",
        action="extend",
        default=[],
        metavar="PATH=VALUE,VALUE",
        help="all combinations of values, such as env.cost=1,5,20",
    )
    parser.add_argument(
        "--memory", type=float, help="MiB to use (default: 80 %% of the device's)"
    )
    parser.add_argument("--run-dir", type=Path, help="where all goes")
    parser.add_argument("--resume", action="store_true", help="go on with --run-dir")
    command.add_verbosity_options(parser)
    parser.set_defaults(sizes=[], values=None)
    return parser


def _walk(options: Any, overrides: list[str]) -> int:
    """Plans, trains and tests batch after batch, and leaves the page."""

    def recall(options: Any) -> None:
        default = _parser().get_default
        going.require_as_asked(
            "a walk-forward", options, overrides, plan.ASKED, default
        )
        plan.recall(options.run_dir, options)

    going.run("walkforward", options, overrides, recall, plan.plan, _train)
    return Exit.FINISHED


def _train(options: Any, planned: Plan) -> None:
    """Trains and tests what is not finished, and writes what came of all."""
    run_dir = options.run_dir
    size = planned.config.num_members
    each = f"the best of {size} each, " if size > 1 else ""
    print(
        f"{sum(map(len, planned.groups))} agents: {len(planned.settings)} settings x "
        f"{len(planned.folds)} folds x {options.seeds} seeds, "
        f"{each}programs to compile: {len(planned.groups)}"
    )

    def remember(sizes: list[int]) -> None:
        options.sizes = sizes
        plan.remember(run_dir, options)

    given = options.sizes, options.memory
    sizes = batches.sizes(planned.groups, *given, print, remember)
    told = options.experiment, "--run-dir", run_dir, "--resume"
    hint = f"go on with: {command.typed('walkforward', *told)}"
    consoles = functools.partial(Console, verbosity(options))
    pieces = walking.walk(planned, sizes, run_dir, hint, consoles)
    table = keeping.write(run_dir, results.join(planned, [*pieces]))
    print(f"\n{table}\n{planned.trials} trials in {run_dir / BACKTEST}")
    print(run_dir / BACKTEST_PAGE)


if __name__ == "__main__":
    sys.exit(main())

"""Trades on paper: the agent of a run decides at every new bar of a file that grows.

Whenever bars were added to the file, the same line decides at them, once each, and says
which positions are to be held from the next bar on. The first time, it begins with cash
at the last bar there is. A file whose past has changed is refused.

Exit status: 0, done. 2, an option, the prices or the run directory is wrong. 3, the
disk took nothing more.

Example:
    python -m ppo_jax.paper runs/trading prices.csv
"""

import argparse
import math
import sys
from pathlib import Path
from typing import Any

import jax

from ppo_jax.arrays import devices
from ppo_jax.backtests import growing, paper
from ppo_jax.envs.trading import Trading
from ppo_jax.errors import UserError
from ppo_jax.host.agents import runs
from ppo_jax.host.process import command, tables
from ppo_jax.host.programs import store
from ppo_jax.host.run_dir import experiment, presence
from ppo_jax.policy import Policy


@command.entrance
def main(argv: list[str] | None = None) -> int:
    """Decides at what is new; returns the exit status."""
    options = command.parse(_parser(), argv)
    experiment.stored_overrides(options.run_dir)
    devices.start()
    store.keep()
    run = runs.restore(
        options.run_dir, "ppo_jax.paper", options.best, options.checkpoint
    )
    member = runs.choose(run, options.member)
    env = run.config.env
    if not isinstance(env, Trading):
        kind = type(env).__name__
        raise UserError(f"{options.run_dir}: expected a run in Trading, got {kind}")
    learner = jax.tree.map(lambda x: x[member], run.population.runs.learner)
    prices = growing.prices_like(env, options.prices, options.repairs)
    market = jax.tree.unflatten(
        jax.tree.structure(env), map(float, jax.tree.leaves(learner.config.env))
    )
    home = options.to or options.run_dir / "paper"
    with presence.held(home):
        book = paper.follow(Policy.of(learner), market, prices, home)
    print(_told(book.decisions[-1], prices.bars.symbols))
    print(home / paper.KEPT)
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = command.parser("paper", __doc__)
    command.add_run(parser)
    parser.add_argument(
        "prices", type=Path, metavar="PRICES", help="a file of prices that grows"
    )
    parser.add_argument(
        "--to", type=Path, help="where decisions are kept (default: RUN_DIR/paper)"
    )
    parser.add_argument(
        "--repairs",
        nargs="+",
        action="extend",
        default=[],
        metavar="NAME",
        help="repairs of the file, beside those of the experiment",
    )
    command.add_member_options(parser)
    return parser


def _told(decision: dict[str, Any], symbols: tuple[str, ...]) -> str:
    """The last decision as text; – is what an agent says that is broken."""
    columns = zip(symbols, decision["positions"], decision["wanted"], strict=True)
    rows = [
        (name, _known(held, ".2%"), _known(wanted, ".2%"))
        for name, held, wanted in columns
    ]
    equity = f"equity {_known(decision['equity'], '.6f')} of 1 at the start"
    head = f"close of {decision['time']}, {equity}"
    if paper.is_bankrupt(decision):
        head += "; bankrupt, and nothing is decided any more"
    return f"{head}\n\n{tables.aligned(('asset', 'held', 'wanted'), rows)}"


def _known(number: float | None, form: str) -> str:
    return "–" if number is None or not math.isfinite(number) else f"{number:{form}}"


if __name__ == "__main__":
    sys.exit(main())

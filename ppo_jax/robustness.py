"""Says what attacks on what it sees cost the agent of a run.

It plays whole episodes against every opponent with every radius ε, all radii in one
program, and leaves robustness.json, robustness.md and, with matplotlib, robustness.png.

Exit status: 0, done. 2, an option or a run directory is wrong.

Example:
    python -m ppo_jax.robustness runs/cartpole --eps 0.1 0.2
"""

import argparse
import math
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import jax

from ppo_jax.arrays import devices
from ppo_jax.errors import UserError
from ppo_jax.host.agents import curves, runs
from ppo_jax.host.agents.curves import Curves
from ppo_jax.host.agents.runs import Restored
from ppo_jax.host.loop import evaluation
from ppo_jax.host.metrics import figures
from ppo_jax.host.process import command
from ppo_jax.host.programs import store
from ppo_jax.host.run_dir import experiment, files
from ppo_jax.state import Learner

EPS = (0.025, 0.05, 0.075, 0.1, 0.15, 0.2, 0.3)


@command.entrance
def main(argv: list[str] | None = None) -> int:
    """Attacks a run's agent; returns the exit status."""
    options = command.parse(_parser(), argv)
    command.require(options.episodes >= 1, "--episodes", options.episodes, "at least 1")
    for eps in options.eps:
        command.require(0 <= eps < math.inf, "--eps", eps, "numbers ≥ 0")
    options.eps = sorted({0.0, *options.eps})
    _report(options)
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = command.parser("robustness", __doc__)
    command.add_run(parser)
    parser.add_argument(
        "--against",
        type=Path,
        metavar="RUN_DIR",
        help="another run to compare with, such as one without an adversary",
    )
    parser.add_argument(
        "--eps",
        type=float,
        nargs="+",
        default=EPS,
        help="radii, in units of observations, normalised if there is an obs_clip; "
        "0 is always played too",
    )
    parser.add_argument(
        "--episodes", type=int, default=64, help="for each radius (default: 64)"
    )
    command.add_agent_options(parser)
    parser.add_argument("--out", type=Path, help="folder (default: RUN_DIR)")
    return parser


def _report(options: Any) -> None:
    """Attacks the agents, and tells of it in three ways."""
    devices.start()
    store.keep()
    paths = [path for path in (options.run_dir, options.against) if path]
    for path in paths:
        experiment.stored_overrides(path)
    if len({path.resolve() for path in paths}) < len(paths):
        raise UserError(f"--against: expected another run than {options.run_dir}")
    out = options.out or options.run_dir
    files.require_folder(out)
    restored = {
        str(path): runs.restore(
            path, "ppo_jax.robustness", options.best, options.checkpoint
        )
        for path in paths
    }
    first = restored[str(options.run_dir)]
    options.sample = evaluation.samples(first.config, options.sample)
    for run in restored.values():
        _require_comparable(first, run, options.against)
    learners = {name: _agent(run, options.member) for name, run in restored.items()}
    how = (options.eps, options.episodes, not options.sample)
    agents = {name: curves.play(agent, *how) for name, agent in learners.items()}
    text = f"ε is in units of {_unit(first)}.\n\n{curves.table(agents, options.eps)}"
    print(text, end="")
    report = {
        "eps": list(options.eps),
        "unit": _unit(first),
        "deterministic": not options.sample,
        "checkpoints": {name: run.update for name, run in restored.items()},
        "agents": agents,
    }
    files.write_json(out / "robustness.json", report)
    files.write(out / "robustness.md", text)
    _draw(agents, options.eps, out / "robustness.png")


def _require_comparable(run: Restored, other: Restored, name: Path) -> None:
    """Raises a `UserError` for a run that is not to be compared with another one."""
    if repr(run.config.env) != repr(other.config.env):
        raise UserError(f"{name}: a run in another environment")
    ours, theirs = _unit(run), _unit(other)
    if ours != theirs:
        expected = "expected an obs_clip of both runs, or of neither"
        raise UserError(f"{name}: ε is in {theirs} there, not {ours}: {expected}")


def _unit(run: Restored) -> str:
    """Returns the unit of ε, in words."""
    if run.config.obs_clip is None:
        return "observations as the environment gives them"
    return "normalised observations"


def _agent(run: Restored, asked: int | None) -> Learner:
    """Returns the member that was asked for."""
    member = runs.choose(run, asked)
    return jax.tree.map(lambda x: x[member], run.population.runs.learner)


def _draw(agents: dict[str, Curves], eps: Sequence[float], path: Path) -> None:
    try:
        figures.draw_grid(curves.grid(agents, eps), "ε", path)
    except UserError as error:
        print(f"no picture: {error}", file=sys.stderr)


if __name__ == "__main__":
    sys.exit(main())

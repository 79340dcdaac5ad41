"""Says what attacks on what it sees cost the agent of a run.

It plays whole episodes against every opponent with every radius ε, all radii in one
program, and leaves robustness.json, robustness.md and, with matplotlib, robustness.png.

Exit status: 0, done. 2, an option or a run directory is wrong.

Example:
    python -m ppo_jax.robustness runs/cartpole --eps 0.1 0.2
"""

import argparse
import json
import math
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from ppo_jax.attacks.opponents import OPPONENTS
from ppo_jax.errors import UserError
from ppo_jax.host import command, experiment, figures, files, runs, tables
from ppo_jax.host.figures import Line
from ppo_jax.ppo import episodes

EPS = (0.025, 0.05, 0.075, 0.1, 0.15, 0.2, 0.3)

Figures = dict[str, list[dict[str, float]]]
"""Of an agent: by opponent, the statistics of its returns for each ε."""


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
        help="radii, in units of normalised observations; 0 is always played too",
    )
    parser.add_argument(
        "--episodes", type=int, default=64, help="for each radius (default: 64)"
    )
    command.add_agent_options(parser)
    parser.add_argument("--out", type=Path, help="folder (default: RUN_DIR)")
    return parser


def _report(options: Any) -> None:
    """Attacks the agents, and tells of it in three ways."""
    paths = [path for path in (options.run_dir, options.against) if path]
    for path in paths:
        experiment.stored_overrides(path)
    if len({path.resolve() for path in paths}) < len(paths):
        raise UserError(f"--against: expected another run than {options.run_dir}")
    out = options.out or options.run_dir
    files.require_folder(out)
    restored = [
        runs.restore(path, "ppo_jax.robustness", options.best, options.checkpoint)
        for path in paths
    ]
    if len({repr(run.config.env) for run in restored}) > 1:
        raise UserError(f"{options.against}: a run in another environment")
    agents = {
        str(path): attacked(
            _learner(run, options.member),
            options.eps,
            options.episodes,
            deterministic=not options.sample,
        )
        for path, run in zip(paths, restored, strict=True)
    }
    text = table(agents, options.eps)
    print(text, end="")
    said = {
        "eps": list(options.eps),
        "deterministic": not options.sample,
        "checkpoints": {
            str(path): run.update for path, run in zip(paths, restored, strict=True)
        },
        "agents": agents,
    }
    files.write(out / "robustness.json", json.dumps(said, indent=2) + "\n")
    files.write(out / "robustness.md", text)
    _draw(agents, options.eps, out / "robustness.png")


def _learner(run: Any, asked: int | None) -> Any:
    """The member that was asked for."""
    member = runs.choose(run, asked)
    return jax.tree.map(lambda x: x[member], run.population.runs.learner)


def attacked(
    learner: Any, eps: Sequence[float], num_episodes: int, deterministic: bool = True
) -> Figures:
    """Statistics of returns by opponent and radius; the starts are always the same."""
    found, key = {}, jax.random.key(0)
    for name, opponent in OPPONENTS.items():

        @jax.jit
        @jax.vmap
        def play(radius, opponent=opponent):
            return episodes.returns_against(
                opponent, learner, radius, key, num_episodes, deterministic
            )

        returns, ended = play(jnp.asarray(eps, jnp.float32))
        found[name] = [
            episodes.summarize(total) | {"unfinished": int(np.sum(~over))}
            for total, over in zip(np.asarray(returns), np.asarray(ended), strict=True)
        ]
    return found


def table(agents: dict[str, Figures], eps: Sequence[float]) -> str:
    """Mean and CVaR of the returns as Markdown, a row per agent and opponent.

    >>> figures = {"PGD": [{"mean": 9.0, "cvar_5": 7.5}]}
    >>> print(table({"runs/x": figures}, [0.1]), end="")
    | agent | attack | ε = 0.1 |
    |---|---|---|
    | runs/x | PGD | 9 (7.5) |
    """
    rows = [
        (agent, name, *(f"{x['mean']:.4g} ({x['cvar_5']:.4g})" for x in by_radius))
        for agent, figures in agents.items()
        for name, by_radius in figures.items()
    ]
    return tables.markdown(("agent", "attack", *(f"ε = {x:g}" for x in eps)), rows)


def _draw(agents: dict[str, Figures], eps: Sequence[float], path: Path) -> None:
    """Returns over ε: an agent per column, mean above and CVaR below."""
    grid = [
        [
            (
                f"{agent}: {title}",
                {
                    name: Line(list(eps), [x[key] for x in by_radius])
                    for name, by_radius in found.items()
                },
            )
            for agent, found in agents.items()
        ]
        for key, title in (("mean", "mean return"), ("cvar_5", "CVaR 5 %"))
    ]
    try:
        figures.draw_grid(grid, "ε", path)
    except ImportError:
        hint = "matplotlib is missing: pip install 'ppo_jax[report]'"
        print(f"no picture: {hint}", file=sys.stderr)


if __name__ == "__main__":
    sys.exit(main())

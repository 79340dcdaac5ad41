"""Plays whole episodes with the agent of a run, and says what they returned.

It plays as evaluations during the training do, and with as many episodes the same ones.

Exit status: 0, done. 2, an option or the run directory is wrong.

Example:
    python -m ppo_jax.evaluate runs/cartpole --best --json figures.json
"""

import argparse
import shlex
import sys
from pathlib import Path
from typing import Any

from ppo_jax.envs.check import traces
from ppo_jax.host.agents import players
from ppo_jax.host.process import command
from ppo_jax.host.run_dir import claims, files
from ppo_jax.ppo import episodes


@command.entrance
def main(argv: list[str] | None = None) -> int:
    """Evaluates a checkpoint of a run; returns the exit status."""
    options, fields = players.parse(_parser(), argv)
    if options.json:
        claims.require_output(options.json)
    figures = _evaluate(options, fields)
    if options.json:
        files.write_json(options.json, figures)
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = command.parser("evaluate", __doc__)
    players.add_options(parser, episodes=128)
    parser.add_argument("--json", type=Path, help="also write the figures to a file")
    return parser


def _evaluate(options: Any, fields: list[str]) -> dict[str, Any]:
    """Plays the episodes and prints their statistics."""
    run, member, agent, seed, sample, env = players.restore(
        options, fields, "ppo_jax.evaluate"
    )
    figures = agent.evaluate(options.episodes, seed, sample, env)
    played = run.config.env if env is None else env
    unfinished = figures.pop("unfinished")
    for name, value in figures.items():
        print(f"{name:>10}  {value:g}")
    if unfinished:
        print(
            f"{unfinished} of {options.episodes} episodes did not end within "
            f"{episodes.limit(played):,} steps; their returns go as far as that"
        )
    random = sample or traces.draws(played.outline)
    if not random and options.episodes > 1:
        print(f"nothing is random here: all {options.episodes} episodes are the same")
    return figures | {
        "unfinished": unfinished,
        "random": random,
        "deterministic": not sample,
        "seed": seed,
        "fields": shlex.join(fields),
        "checkpoint": run.update,
        "steps": run.steps,
        "member": member,
    }


if __name__ == "__main__":
    sys.exit(main())

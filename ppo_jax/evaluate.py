"""Plays whole episodes with the agent of a run, and says what they returned.

As evaluations during the training it takes the most likely actions, and with as many
episodes it plays the same ones.

Exit status: 0, done. 2, an option or the run directory is wrong.

Example:
    python -m ppo_jax.evaluate runs/cartpole --best --json figures.json
"""

import argparse
import sys
from pathlib import Path
from typing import Any

from ppo_jax.envs.check import traces
from ppo_jax.host import command, distributed, files, programs, runs
from ppo_jax.host.trained import Trained
from ppo_jax.ppo import episodes


@command.entrance
def main(argv: list[str] | None = None) -> int:
    """Evaluates a checkpoint of a run; returns the exit status."""
    options = command.parse(_parser(), argv)
    command.require(options.episodes >= 1, "--episodes", options.episodes, "at least 1")
    known = options.seed is None or 0 <= options.seed < 2**32
    command.require(known, "--seed", options.seed, "0 to 2³² − 1")
    if options.json:
        files.require_writable(options.json)
    figures = _evaluate(options)
    if options.json:
        files.write_json(options.json, figures)
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = command.parser("evaluate", __doc__)
    command.add_run(parser)
    parser.add_argument(
        "--episodes", type=int, default=128, help="how many (default: 128)"
    )
    command.add_agent_options(parser)
    parser.add_argument(
        "--seed", type=int, help="of the episodes (default: that of the run)"
    )
    parser.add_argument("--json", type=Path, help="also write the figures to a file")
    return parser


def _evaluate(options: Any) -> dict[str, Any]:
    """Plays the episodes and prints their statistics."""
    distributed.prepare()
    programs.keep()
    run = runs.restore(
        options.run_dir, "ppo_jax.evaluate", options.best, options.checkpoint
    )
    member, size = runs.choose(run, options.member), run.population.fitness.size
    seed = run.config.seed if options.seed is None else options.seed
    manner = "sampled" if options.sample else "most likely"
    print(
        f"checkpoint {run.update}, {run.steps:,} steps; {manner} actions, seed {seed}"
    )
    if options.member is None and size > 1:
        print(f"member {member} of {size}, the fittest at its last evaluation")
    agent = Trained(run.config, run.population, run.update).member(member)
    figures = agent.evaluate(options.episodes, seed, options.sample)
    unfinished = figures.pop("unfinished")
    for name, value in figures.items():
        print(f"{name:>10}  {value:g}")
    if unfinished:
        print(
            f"{unfinished} of {options.episodes} episodes did not end within "
            f"{episodes.limit(run.config.env):,} steps; their returns go as far as that"
        )
    random = options.sample or traces.draws(run.config.env.outline)
    if not random and options.episodes > 1:
        print(f"nothing is random here: all {options.episodes} episodes are the same")
    return figures | {
        "unfinished": unfinished,
        "random": random,
        "deterministic": not options.sample,
        "seed": seed,
        "checkpoint": run.update,
        "steps": run.steps,
        "member": member,
    }


if __name__ == "__main__":
    sys.exit(main())

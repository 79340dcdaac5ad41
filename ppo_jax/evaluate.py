"""`python -m ppo_jax.evaluate RUN_DIR [--episodes N] [--member I] [--OPTION …]`."""

import argparse
import json
import sys
from pathlib import Path
from typing import Any


def main(argv: list[str] | None = None) -> int:
    """Evaluates a run's newest checkpoint; returns the exit status.

    0: done. 2: an option or the run directory is wrong.
    """
    options = _parser().parse_args(argv)
    if options.episodes < 1:
        _parser().error(f"--episodes: expected at least 1, got {options.episodes}")
    from ppo_jax.checkpoint import CheckpointError
    from ppo_jax.experiment import ExperimentError

    try:
        figures = _evaluate(options)
        if options.json:
            options.json.write_text(json.dumps(figures, indent=2) + "\n")
    except (ExperimentError, CheckpointError, OSError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="ppo_jax.evaluate", description=__doc__)
    parser.add_argument("run_dir", type=Path)
    parser.add_argument("--episodes", type=int, default=128)
    parser.add_argument(
        "--deterministic",
        action="store_true",
        help="take the most likely action instead of a sample",
    )
    parser.add_argument("--best", action="store_true", help="the best checkpoint")
    parser.add_argument(
        "--member",
        type=int,
        help="which member of a population (default: the fittest at its last "
        "evaluation)",
    )
    parser.add_argument("--json", type=Path, help="also write the figures to a file")
    return parser


def _evaluate(options: Any) -> dict[str, float]:
    """Plays the episodes and prints their statistics."""
    from ppo_jax import episodes, job, runs, training
    from ppo_jax.pbt import population as populations

    job.prepare()
    run = runs.restore(options.run_dir, "ppo_jax.evaluate", options.best)
    config, population = run.config, run.population
    member, size = runs.choose(run, options.member), population.fitness.size
    if options.member is None and size > 1:
        print(f"member {member} of {size}, the fittest at its last evaluation")
    population = populations.member(population, member)
    (returns,), (ended,) = training.evaluate(
        population, config, run.update, options.episodes, options.deterministic
    )
    figures = episodes.summarize(returns)
    for name, value in figures.items():
        print(f"{name:>10}  {value:g}")
    if not ended.all():
        print(
            f"{(~ended).sum()} of {ended.size} episodes did not end within "
            f"{episodes.limit(config.env):,} steps; their returns go as far as that"
        )
    return figures


if __name__ == "__main__":
    sys.exit(main())

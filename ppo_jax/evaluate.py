"""`python -m ppo_jax.evaluate RUN_DIR [--episodes N] [--deterministic]`."""

import argparse
import json
import sys
from pathlib import Path


def main(argv: list[str] | None = None) -> int:
    """Evaluates a run's newest checkpoint; returns the exit status."""
    parser = argparse.ArgumentParser(prog="ppo_jax.evaluate", description=__doc__)
    parser.add_argument("run_dir", type=Path)
    parser.add_argument("--episodes", type=int, default=128)
    parser.add_argument(
        "--deterministic",
        action="store_true",
        help="take the most likely action instead of a sample",
    )
    parser.add_argument("--best", action="store_true", help="the best checkpoint")
    parser.add_argument("--json", type=Path, help="also write the figures to a file")
    options = parser.parse_args(argv)
    if options.episodes < 1:
        parser.error(f"--episodes: expected at least 1, got {options.episodes}")
    from ppo_jax import experiment, training
    from ppo_jax.checkpoint import Checkpointer

    try:
        overrides = experiment.stored_overrides(options.run_dir)
        config = experiment.load(options.run_dir / "experiment.py", overrides)
        checkpoints = Checkpointer(options.run_dir)
        update, population, _ = checkpoints.restore(
            training.start(config), best=options.best
        )
        checkpoints.close()
    except (experiment.ExperimentError, FileNotFoundError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    figures = training.evaluate(
        population, config, update, options.episodes, options.deterministic
    )
    for name, value in figures.items():
        print(f"{name:>10}  {value:g}")
    if options.json:
        options.json.write_text(json.dumps(figures, indent=2) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())

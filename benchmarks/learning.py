"""Do twin quantile critics with value clipping learn as fast as a scalar critic?

    python benchmarks/learning.py
    python benchmarks/learning.py --table

The first trains both on CartPole and on Pendulum, all seeds of each in one program,
evaluates them at intervals, and keeps after how many environment steps the mean return
of an evaluation first reached the target. Both print the table of what is kept: the
median over seeds with a bootstrapped interval, and every seed.
"""

import argparse
import dataclasses
import json
import runpy
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import records

from ppo_jax import Config, terms
from ppo_jax.critics import PerQuantile, Quantile
from ppo_jax.host.loop import evaluation
from ppo_jax.normalization.return_scale import ReturnNormalization
from ppo_jax.ppo import population
from ppo_jax.schedules import Progress
from ppo_jax.sweeps import aggregate

HERE = Path(__file__).parent
TARGETS = {"CartPole": 475.0, "Pendulum": -200.0}
EVALUATIONS = 50
SETTINGS = {"steps": 500_000, "episodes": 32, "quantiles": 32, "clip_eps": 0.7}
"""Of a run, an evaluation and a critic; `clip_eps` is in units of the return scale,
which both kinds of critic have."""


def main() -> None:
    """Trains both kinds of critic on both tasks, and prints the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, default=8)
    parser.add_argument("--table", action="store_true", help="train nothing")
    parser.add_argument("--results", type=Path, default=HERE / "results/learning.json")
    options = parser.parse_args()
    if not options.table:
        records.write(options.results, SETTINGS, list(measure(options.seeds)))
    print("\n".join(table(records.read(options.results))))


def measure(seeds: int) -> Iterator[dict[str, Any]]:
    """Steps of every seed to the target, by task and critic; None: never."""
    for task, target in TARGETS.items():
        path = HERE.parent / "experiments" / f"{task.lower()}.py"
        scalar = dataclasses.replace(
            runpy.run_path(str(path))["config"],
            total_timesteps=SETTINGS["steps"],
            return_scale=ReturnNormalization(),
        )
        for critic, config in (("scalar", scalar), ("twin quantile", twins(scalar))):
            row = {
                "task": task,
                "target": target,
                "critic": critic,
                "steps_between": between(config) * config.steps_per_update,
                "steps": [
                    int(steps) if np.isfinite(steps) else None
                    for steps in steps_to(target, config, seeds)
                ],
            }
            print(json.dumps(row), flush=True)
            yield row


def twins(config: Config) -> Config:
    """The same experiment with twin quantile critics and value clipping."""
    objective = (
        dataclasses.replace(term, clip_eps=SETTINGS["clip_eps"])
        if isinstance(term, terms.Value)
        else term
        for term in config.terms
    )
    critic = Quantile(SETTINGS["quantiles"], clip=PerQuantile())
    return dataclasses.replace(
        config, critic=critic, num_critics=2, terms=tuple(objective)
    )


def between(config: Config) -> int:
    """Updates between two evaluations."""
    return max(config.num_updates // EVALUATIONS, 1)


def steps_to(target: float, config: Config, seeds: int) -> np.ndarray:
    """Environment steps until an evaluation reaches the target, `[seeds]`; or ∞."""
    members = population.init(config, jax.random.split(jax.random.key(0), seeds))
    length = between(config)
    reached = np.full(seeds, np.inf)
    for done in range(0, config.num_updates, length):
        progress = Progress.of(done + np.arange(length), config.num_updates)
        count = min(length, config.num_updates - done)
        members, _ = population.advance(members, progress, jnp.int32(count))
        returns, _ = evaluation.evaluate(
            members, config.seed, done, SETTINGS["episodes"]
        )
        steps = (done + count) * config.steps_per_update
        there = returns.mean(axis=1) >= target
        reached = np.where(there, np.minimum(reached, steps), reached)
        if np.isfinite(reached).all():
            break
    return reached


def table(record: dict[str, Any]) -> Iterator[str]:
    """Lines of a markdown table, below one that says how it was measured."""
    yield records.caption(record)
    yield ""
    yield (
        "| task | target | critic | steps, median | 95 % | steps between evaluations "
        "| evaluations, by seed |"
    )
    yield "|---|--:|---|--:|---|--:|---|"
    for row in record["rows"]:
        steps = np.array([np.inf if x is None else x for x in row["steps"]])
        low, high = aggregate.interval(lambda x: median(x[..., 0]), steps[:, None])
        evaluations = " ".join(shown(x) for x in steps / row["steps_between"])
        yield (
            f"| {row['task']} | {shown(row['target'])} | {row['critic']} "
            f"| {shown(median(steps))} | {shown(low)} to {shown(high)} "
            f"| {shown(row['steps_between'])} | {evaluations} |"
        )


def median(steps: np.ndarray) -> np.ndarray:
    """Of an even number, half-way between the middle two: ∞ if one is, `[...]`."""
    return np.median(steps, axis=-1)


def shown(number: float) -> str:
    """A number for readers.

    >>> [shown(x) for x in (18432.0, -200.0, 2.5, np.inf)]
    ['18,432', '−200', '2.5', '∞']
    """
    return f"{number:,.10g}".replace("-", "−").replace("inf", "∞")


if __name__ == "__main__":
    main()

"""What is it worth to begin with what was learned on another task?

    python benchmarks/warm_start.py
    python benchmarks/warm_start.py --table

The first trains agents on Pendulum, all seeds in one program, and then on others that
are heavier, longer or upside down: once anew, and once with the parameters and
statistics of the agents of the same seeds, as `--warm-start` takes them over. Both
print the table of what is kept: interquartile means over seeds with bootstrapped
intervals, of the evaluation before the first update, of all later ones together and of
the last one.
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

from ppo_jax import Config, envs
from ppo_jax.host.loop import evaluation
from ppo_jax.ppo import population
from ppo_jax.schedules import Progress
from ppo_jax.state import Learner, Population
from ppo_jax.sweeps import aggregate

HERE = Path(__file__).parent
TASKS = {
    "a third heavier": {"m": 1.33},
    "a fifth longer": {"l": 1.2},
    "upside down": {"g": -10.0},
}
"""Of Pendulum, whose bob has a mass of 1, a length of 1 and falls with 10."""
WHEN = ("before", "later", "last")
SETTINGS = {
    "steps_before": 300_000,
    "steps": 150_000,
    "evaluations": 10,
    "episodes": 32,
}


def main() -> None:
    """Trains on all tasks, and prints the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, default=8)
    parser.add_argument("--table", action="store_true", help="train nothing")
    results = HERE / "results/warm_start.json"
    parser.add_argument("--results", type=Path, default=results)
    options = parser.parse_args()
    if not options.table:
        records.write(options.results, SETTINGS, list(measure(options.seeds)))
    print("\n".join(table(records.read(options.results))))


def measure(seeds: int) -> Iterator[dict[str, Any]]:
    """Returns of every seed, by task and by how the agents begin."""
    path = HERE.parent / "experiments" / "pendulum.py"
    before = dataclasses.replace(
        runpy.run_path(str(path))["config"], total_timesteps=SETTINGS["steps_before"]
    )
    known, _ = train(before, begun(before, seeds, 0))
    for task, params in TASKS.items():
        env = envs.Gymnax("Pendulum-v1", params=params)
        config = dataclasses.replace(before, env=env, total_timesteps=SETTINGS["steps"])
        anew = begun(config, seeds, 1)
        for begin, members in (("anew", anew), ("warm", warm(anew, known))):
            _, returns = train(config, members)
            row = {"task": task, "begin": begin}
            said = returns[0], returns[1:].mean(axis=0), returns[-1]
            row |= dict(zip(WHEN, (np.rint(x).tolist() for x in said), strict=True))
            print(json.dumps(row), flush=True)
            yield row


def begun(config: Config, seeds: int, key: int) -> Population:
    """Members before their first update."""
    return population.init(config, jax.random.split(jax.random.key(key), seeds))


def warm(members: Population, known: Learner) -> Population:
    """The same members with what others have learned."""
    copied = {
        name: jax.tree.map(jnp.copy, getattr(known, name))
        for name in ("params", "obs_moments", "return_scale")
    }
    members = jax.tree.map(jnp.copy, members)
    learner = dataclasses.replace(members.runs.learner, **copied)
    runs = dataclasses.replace(members.runs, learner=learner)
    return dataclasses.replace(members, runs=runs)


def train(config: Config, members: Population) -> tuple[Learner, np.ndarray]:
    """What members learn; mean returns of evaluations `[1 + evaluations, seeds]`."""
    updates, members = config.num_updates, jax.tree.map(jnp.copy, members)
    length = -(-updates // SETTINGS["evaluations"])
    returns = [evaluated(config, members)]
    for done in range(0, updates, length):
        progress = Progress.of(done + np.arange(length), updates)
        count = min(length, updates - done)
        members, _ = population.advance(members, progress, jnp.int32(count))
        returns.append(evaluated(config, members))
    return members.runs.learner, np.array(returns)


def evaluated(config: Config, members: Population) -> np.ndarray:
    """Mean returns of the same episodes, `[seeds]`."""
    returns, _ = evaluation.evaluate(members, config.seed, 0, SETTINGS["episodes"])
    return returns.mean(axis=1)


def table(record: dict[str, Any]) -> Iterator[str]:
    """Lines of a markdown table, below one that says how it was measured."""
    yield records.caption(record)
    yield ""
    yield "| Pendulum | begin | before | later | last | all three, by seed |"
    yield "|---|---|--:|--:|--:|---|"
    for row in record["rows"]:
        columns = [row[when] for when in WHEN]
        seeds = zip(*columns, strict=True)
        each = "; ".join(" ".join(map(number, seed)) for seed in seeds)
        cells = " | ".join(middle(np.array(column)) for column in columns)
        yield f"| {row['task']} | {row['begin']} | {cells} | {each} |"


def middle(scores: np.ndarray) -> str:
    """The interquartile mean of seeds, and its interval."""
    column = scores[:, None]
    mean = float(aggregate.interquartile_mean(column))
    ends = aggregate.interval(aggregate.interquartile_mean, column)
    low, high = (number(round(end)) for end in ends)
    return f"{number(round(mean))} ({low} to {high})"


def number(value: float) -> str:
    """A number for readers.

    >>> number(-12.5)
    '−12.5'
    """
    return f"{value:.10g}".replace("-", "−")


if __name__ == "__main__":
    main()

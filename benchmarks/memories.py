"""What kinds of memory cost, and after how many steps they recall.

    python benchmarks/memories.py
    python benchmarks/memories.py --table

The first trains CartPole without a memory and with each kind, in rounds that take
turns, and keeps environment steps per second of every round. Then it trains both
experiments that need a memory, all seeds in one program, and keeps after how many
environment steps an evaluation recalled everything. Both print the tables of what is
kept.
"""

import argparse
import dataclasses
import json
import runpy
import statistics
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import records
from learning import between, shown, steps_to
from measure import ROLLOUT_LENGTH

from ppo_jax import Config, networks
from ppo_jax.ppo import population
from ppo_jax.schedules import Progress

HERE = Path(__file__).parent
KINDS = {
    "none": None,
    "Lstm": networks.Lstm(size=64),
    "Gru": networks.Gru(size=64),
    "MinGru": networks.MinGru(size=64),
}
TASKS = ("memory", "memory_chain")
SPEEDS, STEPS = "steps/s", "steps"
SETTINGS = {"rounds": 5, "seconds": 2, "seeds": 8}
"""Rounds, and how long each is at least; seeds of a task."""
ENVIRONMENTS = (4, 64, 1024)


def main() -> None:
    """Measures all, and prints the tables."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--table", action="store_true", help="train nothing")
    parser.add_argument("--results", type=Path, default=HERE / "results/memories.json")
    options = parser.parse_args()
    if not options.table:
        rows = [row for n in ENVIRONMENTS for row in speeds(n)]
        rows += [row for task in TASKS for row in recalls(task)]
        records.write(options.results, SETTINGS, rows)
    print("\n".join(table(records.read(options.results))))


def speeds(num_envs: int) -> Iterator[dict[str, Any]]:
    """Environment steps per second of every round, by memory."""
    programs = {name: compiled(memory, num_envs) for name, memory in KINDS.items()}
    found: dict[str, list[float]] = {name: [] for name in programs}
    for _ in range(SETTINGS["rounds"]):
        for name, train in programs.items():
            begun, updates = time.perf_counter(), 0
            while (taken := time.perf_counter() - begun) < SETTINGS[
                "seconds of a round"
            ]:
                jax.block_until_ready(train())
                updates += 1
            found[name].append(updates * ROLLOUT_LENGTH * num_envs / taken)
    for name, each in found.items():
        row = {"memory": name, "environments": num_envs, SPEEDS: each}
        print(json.dumps(row), flush=True)
        yield row


def compiled(memory: networks.Memory | None, num_envs: int):
    """A program of one update."""
    network = networks.ActorCritic(memory=memory)
    sizes = {"num_envs": num_envs, "num_steps": ROLLOUT_LENGTH}
    config = Config("CartPole-v1", network=network, **sizes)
    members = population.init(config, jax.random.split(jax.random.key(0), 1))

    def train(members):
        progress = Progress.of(np.arange(1), config.num_updates)
        return population.advance(members, progress, jnp.int32(1))

    program = jax.jit(train).lower(members).compile()
    return lambda: program(members)


def recalls(task: str) -> Iterator[dict[str, Any]]:
    """Steps of every seed until all is recalled, by memory; None: never."""
    path = HERE.parent / "experiments" / f"{task}.py"
    config = runpy.run_path(str(path))["config"]
    for name, memory in KINDS.items():
        network = dataclasses.replace(config.network, memory=memory)
        config = dataclasses.replace(config, network=network)
        if memory is not None:
            steps = steps_to(1.0, config, SETTINGS["seeds"])
            row = {
                "memory": name,
                "task": task,
                "between evaluations": between(config) * config.steps_per_update,
                STEPS: [int(x) if np.isfinite(x) else None for x in steps],
            }
            print(json.dumps(row), flush=True)
            yield row


def table(record: dict[str, Any]) -> Iterator[str]:
    """Lines of two markdown tables, below one that says how they were measured."""
    yield records.caption(record)
    yield ""
    yield "| environments | memory | steps/s, median | × Lstm | by round |"
    yield "|--:|---|--:|--:|---|"
    rows = [row for row in record["rows"] if SPEEDS in row]
    of_lstm = {row["environments"]: row[SPEEDS] for row in rows if is_lstm(row)}
    for row in rows:
        ratios = zip(row[SPEEDS], of_lstm[row["environments"]], strict=True)
        ratio = statistics.median(a / b for a, b in ratios)
        rounds = " ".join(f"{x:,.0f}" for x in row[SPEEDS])
        median = f"{statistics.median(row[SPEEDS]):,.0f}"
        shared = f"| {row['environments']} | {row['memory']} | {median}"
        yield f"{shared} | {ratio:.2f} | {rounds} |"
    yield ""
    yield "| experiment | memory | steps, median | between evaluations | by seed |"
    yield "|---|---|--:|--:|---|"
    for row in record["rows"]:
        if STEPS in row:
            steps = [np.inf if x is None else x for x in row[STEPS]]
            median, between = map(
                shown, (float(np.median(steps)), row["between evaluations"])
            )
            seeds = " ".join(map(shown, steps))
            shared = f"| {row['task']} | {row['memory']} | {median}"
            yield f"{shared} | {between} | {seeds} |"


def is_lstm(row: dict[str, Any]) -> bool:
    """Whether a row is that which others are held against."""
    return row["memory"] == "Lstm"


if __name__ == "__main__":
    main()

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
        rows = [*map(speeds, ENVIRONMENTS), *map(recalls, TASKS)]
        records.write(options.results, SETTINGS, rows)
    print("\n".join(table(records.read(options.results))))


def speeds(num_envs: int) -> dict[str, Any]:
    """Environment steps per second of every round, by memory."""
    programs = {name: compiled(memory, num_envs) for name, memory in KINDS.items()}
    found: dict[str, list[float]] = {name: [] for name in programs}
    for _ in range(SETTINGS["rounds"]):
        for name, train in programs.items():
            begun, taken, updates = time.perf_counter(), 0.0, 0
            while taken < SETTINGS["seconds"]:
                jax.block_until_ready(train())
                taken, updates = time.perf_counter() - begun, updates + 1
            found[name].append(updates * ROLLOUT_LENGTH * num_envs / taken)
    return said({"environments": num_envs, SPEEDS: found})


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


def recalls(task: str) -> dict[str, Any]:
    """Steps of every seed until all is recalled, by memory; None: never."""
    path = HERE.parent / "experiments" / f"{task}.py"
    config = runpy.run_path(str(path))["config"]
    found = {}
    for name, memory in KINDS.items():
        if memory is not None:
            network = dataclasses.replace(config.network, memory=memory)
            config = dataclasses.replace(config, network=network)
            steps = steps_to(1.0, config, SETTINGS["seeds"])
            found[name] = [int(x) if np.isfinite(x) else None for x in steps]
    every = between(config) * config.steps_per_update
    return said({"task": task, "evaluated every": every, STEPS: found})


def said(row: dict[str, Any]) -> dict[str, Any]:
    """The row, which is printed."""
    print(json.dumps(row), flush=True)
    return row


def table(record: dict[str, Any]) -> Iterator[str]:
    """Lines of two markdown tables, below one that says how they were measured."""
    yield records.caption(record)
    yield ""
    yield "| environments | memory | steps/s, median | × Lstm | by round |"
    yield "|--:|---|--:|--:|---|"
    for row in record["rows"]:
        for name, found in row.get(SPEEDS, {}).items():
            ratios = zip(found, row[SPEEDS]["Lstm"], strict=True)
            ratio = statistics.median(a / b for a, b in ratios)
            median, *rounds = (f"{x:,.0f}" for x in (statistics.median(found), *found))
            shared = f"| {row['environments']} | {name} | {median}"
            yield f"{shared} | {ratio:.2f} | {' '.join(rounds)} |"
    yield ""
    yield "| experiment | memory | steps, median | evaluated every | by seed |"
    yield "|---|---|--:|--:|---|"
    for row in record["rows"]:
        for name, found in row.get(STEPS, {}).items():
            steps = [np.inf if x is None else x for x in found]
            median, every, *seeds = map(
                shown, (float(np.median(steps)), row["evaluated every"], *steps)
            )
            shared = f"| {row['task']} | {name} | {median}"
            yield f"{shared} | {every} | {' '.join(seeds)} |"


if __name__ == "__main__":
    main()

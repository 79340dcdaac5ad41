"""What does PPO reach on tasks of other suites, and how long does it take?

    python benchmarks/tasks.py --only xminigrid
    python benchmarks/tasks.py --only HalfCheetah --peer sb3-env/bin/python
    python benchmarks/tasks.py --table

The first trains all seeds of each task as a sweep, which is kept in a folder of `--out`
and goes on there if it was interrupted, and keeps every evaluation. The second lets
another library train as many, in an environment of its own. All print the table of
what is kept: means over seeds, of all evaluations as a curve, and of the last one with
a bootstrapped interval. One experiment trains all tasks of a suite.
"""

import argparse
import json
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import records

from ppo_jax.sweeps import aggregate

HERE = Path(__file__).parent
PROJECT = HERE.parent
METRIC = "eval/mean_reward"
BLOCKS = "▁▂▃▄▅▆▇█"
MINUTES = 60
"""The most that a task may take."""


class Task(NamedTuple):
    """A row of the table."""

    env: str
    experiment: str
    steps: int
    agent: str = "feed-forward"
    options: tuple[str, ...] = ()
    """Fields that differ from the experiment's, besides the budget."""
    published: str = ""
    """The best figure that somebody else told."""
    peer: str = ""
    """Another library that can learn it."""

    @property
    def name(self) -> str:
        """Of its folder, and in `--only`."""
        return f"{self.env} {self.agent}".replace("/", " ").replace(" ", "-")


CONTROL = "experiments/playground.py"
RECALL = "experiments/memory_chain.py"
TASKS = (
    Task("xminigrid/MiniGrid-DoorKey-8x8", "experiments/doorkey.py", 2_000_000),
    Task("jumanji/Snake-v1", "experiments/snake.py", 2_000_000, peer="rejax"),
    Task(
        "playground/CartpoleBalance",
        CONTROL,
        2_000_000,
        published="SLM-Lab PPO 918 at 2 M; D4PG 995",
    ),
    Task(
        "playground/ReacherEasy",
        CONTROL,
        500_000,
        options=("--env.env.id", "ReacherEasy"),
        published="SLM-Lab PPO 286 at 500 k; D4PG 945",
        peer="Brax",
    ),
    Task(
        "playground/CheetahRun",
        CONTROL,
        500_000,
        options=("--env.env.id", "CheetahRun"),
        published="SLM-Lab PPO 54 at 2 M; D4PG 839",
    ),
    Task("gymnax/MemoryChain-bsuite", RECALL, 500_000, agent="GRU"),
    Task("gymnax/MemoryChain-bsuite", "benchmarks/memoryless.py", 500_000),
    Task(
        "craftax/Craftax-Classic-Symbolic-v1",
        "experiments/craftax_classic.py",
        1_000_000,
    ),
    Task(
        "gymnasium/HalfCheetah-v5",
        "experiments/halfcheetah.py",
        200_000,
        peer="stable-baselines3",
    ),
)
PEERS = {
    "Brax": "peer_brax.py",
    "rejax": "peer_rejax_tasks.py",
    "stable-baselines3": "peer_stable_baselines3.py",
}
"""What trains with a library."""
AT_ONCE = 2
"""Seeds of the peer that train side by side, each with a thread of its own."""


def main() -> None:
    """Trains on the tasks that are asked for, and prints the table of all."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, default=8)
    parser.add_argument("--only", type=re.compile, default=re.compile(""))
    parser.add_argument("--out", type=Path, default=Path("runs/tasks"))
    parser.add_argument("--peer", type=Path, help="the Python of a task's peer")
    parser.add_argument("--table", action="store_true", help="train nothing")
    parser.add_argument("--results", type=Path, default=HERE / "results/tasks")
    options = parser.parse_args()
    chosen = [] if options.table else TASKS
    for task in (task for task in chosen if options.only.search(task.name)):
        if not options.peer:
            row = trained(task, options.seeds, options.out / task.name)
        elif task.peer:
            task = task._replace(agent=task.peer)
            row = trained_elsewhere(task, options.seeds, options.peer)
        else:
            continue
        print(json.dumps(row), flush=True)
        records.write(options.results / f"{task.name}.json", {}, [row])
    kept = [records.read(path) for path in sorted(options.results.glob("*.json"))]
    print("\n".join(table(kept)))


def trained(task: Task, seeds: int, folder: Path) -> dict[str, Any]:
    """Every evaluation of every seed of a task, and the seconds that all took."""
    command = [sys.executable, "-m", "ppo_jax.sweep", PROJECT / task.experiment]
    if folder.exists():
        command += ["--run-dir", folder, "--resume"]
    else:
        command += ["--run-dir", folder, "--seeds", str(seeds), "--quiet"]
        command += ["--total-timesteps", str(task.steps), *task.options]
    subprocess.run(command, check=True, timeout=60 * MINUTES)
    runs = json.loads((folder / "results.json").read_text())["runs"]
    return {
        "env": task.env,
        "agent": task.agent,
        "published": task.published,
        "seconds": round(sum(map(elapsed, folder.glob("batches/*/metrics.jsonl")))),
        "steps": runs[0]["steps"],
        "returns": [run["evaluations"][METRIC] for run in runs],
    }


def trained_elsewhere(task: Task, seeds: int, python: Path) -> dict[str, Any]:
    """The same of the task's peer, some seeds at once."""
    begin = time.perf_counter()

    def train(seed: int) -> dict[str, Any]:
        command = [
            python,
            HERE / PEERS[task.peer],
            task.env,
            "--steps",
            str(task.steps),
        ]
        done = subprocess.run(
            [*command, "--seed", str(seed)],
            check=True,
            capture_output=True,
            timeout=60 * MINUTES,
        )
        return json.loads(done.stdout.splitlines()[-1])

    with ThreadPoolExecutor(AT_ONCE) as pool:
        runs = list(pool.map(train, range(seeds)))
    return {
        "env": task.env,
        "agent": task.agent,
        "published": "",
        "seconds": round(time.perf_counter() - begin),
        "steps": runs[0]["steps"],
        "returns": [run["returns"] for run in runs],
    }


def elapsed(log: Path) -> float:
    """Seconds that a run took, compilation and all lives of it included."""
    return json.loads(log.read_text().splitlines()[-1])["time/time_elapsed"]


def table(kept: list[dict[str, Any]]) -> Iterator[str]:
    """Lines of a markdown table."""
    yield (
        "| task | agent | seeds | steps | minutes | curve | from | to | at the end "
        "| 95 % | published |"
    )
    yield "|---|---|--:|--:|--:|---|--:|--:|--:|---|---|"
    for row in (row for record in kept for row in record["rows"]):
        returns = np.array(row["returns"], float)
        last = returns[:, -1:]
        low, high = aggregate.interval(lambda x: x.mean(axis=(-2, -1)), last)
        curve = returns.mean(axis=0)
        yield (
            f"| {row['env']} | {row['agent']} | {len(returns)} "
            f"| {row['steps'][-1]:,} | {row['seconds'] / 60:.0f} | {drawn(curve)} "
            f"| {shown(curve.min())} | {shown(curve.max())} "
            f"| {shown(last.mean())} | {shown(low)} to {shown(high)} "
            f"| {row['published']} |"
        )


def drawn(curve: np.ndarray) -> str:
    """A curve as a line of text, between its lowest value and its highest.

    >>> drawn(np.array([0.0, 0.5, 1.0, 0.2]))
    '▁▅█▂'
    """
    width = np.ptp(curve) or 1.0
    heights = np.rint((curve - curve.min()) / width * (len(BLOCKS) - 1))
    return "".join(BLOCKS[int(height)] for height in heights)


def shown(number: float) -> str:
    """To three digits that say something, or whole.

    >>> [shown(x) for x in (951.27, -1.5, 0.9637)]
    ['951', '−1.5', '0.964']
    """
    text = f"{number:.0f}" if abs(number) >= 100 else f"{number:.3g}"
    return text.replace("-", "−")


if __name__ == "__main__":
    main()

"""Microseconds of a step of an agent that acts outside: compiled, by NumPy, by ONNX.

    taskset -c 1 python benchmarks/acting.py --python onnx-env/bin/python
    python benchmarks/acting.py --table

The first exports agents that have not learned, and takes steps on one core: with
`policy.act` under `jax.jit`, with the runner of the export, and with onnxruntime in the
environment of the recipe (docs/export.md), in rounds that take turns. It keeps the
median step of every round. Both print the table of what is kept: the median of rounds,
and each.
"""

import argparse
import statistics
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import jax
import numpy as np
import records
from outside import timed

from ppo_jax import Config, Policy, networks
from ppo_jax.exports import folder as folders
from ppo_jax.exports import runner
from ppo_jax.ppo import learner

HERE = Path(__file__).parent
ROUNDS = 7
STEPS = {1: 2000, 256: 100}
"""Of a round, by episodes that are played at once."""
GRID = networks.ActorCritic(networks.Cnn())
CONFIGS = {
    "MLP 64, 64": Config("CartPole-v1", obs_clip=10.0),
    "MLP 64, 64, LSTM 64": Config(
        "Pendulum-v1",
        obs_clip=10.0,
        network=networks.ActorCritic(memory=networks.Lstm(size=64)),
    ),
    "CNN 16, MLP 128": Config("Breakout-MinAtar", network=GRID),
}


def main() -> None:
    """Measures all, and prints the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--python", type=Path, help="that of the recipe for ONNX")
    parser.add_argument("--table", action="store_true", help="measure nothing")
    parser.add_argument("--results", type=Path, default=HERE / "results/acting.json")
    options = parser.parse_args()
    if not options.table:
        settings = {"rounds": ROUNDS} | {f"steps × {n}": k for n, k in STEPS.items()}
        records.write(options.results, settings, list(measure(options.python)))
    print("\n".join(table(records.read(options.results))))


def measure(python: Path | None) -> Iterator[dict[str, Any]]:
    """Microseconds of a step in every round, by network, episodes and runner."""
    for name, config in CONFIGS.items():
        with tempfile.TemporaryDirectory() as home:
            folder = Path(home) / "policy"
            policy = Policy.of(learner.init(config, jax.random.key(0)).learner)
            folders.require_free(folder)
            folders.write(folder, policy, "all", {})
            kinds = {"policy.act": compiled(policy), "NumPy": by_numpy(folder)}
            for n, steps in STEPS.items():
                rounds = {kind: [] for kind in kinds}
                if python is not None:
                    rounds["onnxruntime"] = []
                for _ in range(ROUNDS):
                    for kind, play in kinds.items():
                        rounds[kind].append(timed(play(n), steps))
                    if python is not None:
                        rounds["onnxruntime"].append(by_onnx(python, folder, n, steps))
                for kind, found in rounds.items():
                    row = {"network": name, "episodes": n, "by": kind, "µs": found}
                    print(row, flush=True)
                    yield row


def compiled(policy: Policy) -> Callable[[int], Callable[[], Any]]:
    """Steps of the policy itself, each waited for."""
    act = jax.jit(policy.act)

    def play(n):
        (leaf,) = policy.obs_leaves
        state, obs = policy.init(n), np.zeros((n, *leaf.shape), leaf.dtype)

        def step():
            nonlocal state
            action, state = act(state, obs)
            return np.asarray(action)

        return step

    return play


def by_numpy(folder: Path) -> Callable[[int], Callable[[], Any]]:
    """Steps of the runner."""
    policy = runner.Policy(folder)
    (leaf,) = runner.read(folder)["observation"]

    def play(n):
        state, obs = policy.init(n), np.zeros((n, *leaf["shape"]), leaf["dtype"])

        def step():
            nonlocal state
            action, state = policy.act(state, obs)
            return action

        return step

    return play


def by_onnx(python: Path, folder: Path, n: int, steps: int) -> float:
    """What `outside.py` measures in an environment of its own."""
    model = folder.with_suffix(".onnx")
    if not model.exists():
        recipe = HERE.parent / "docs" / "to_onnx.py"
        subprocess.run([python, recipe, folder], check=True)
    words = [python, HERE / "outside.py", model, str(n), str(steps)]
    return float(subprocess.check_output(words, text=True))


def table(record: dict[str, Any]) -> Iterator[str]:
    """Lines of a markdown table, below one that says how it was measured."""
    yield records.caption(record)
    yield ""
    yield "| network | episodes | by | µs per step, median | by round |"
    yield "|---|--:|---|--:|---|"
    for row in record["rows"]:
        each = " ".join(f"{x:.1f}" for x in row["µs"])
        yield (
            f"| {row['network']} | {row['episodes']} | {row['by']} "
            f"| {statistics.median(row['µs']):.1f} | {each} |"
        )


if __name__ == "__main__":
    main()

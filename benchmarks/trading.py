"""Steps per second of `Trading`, alone and in training, next to gym-anytrading.

    taskset -c 1 python benchmarks/trading.py --python anytrading-env/bin/python
    python benchmarks/trading.py --table

The first plays and trains in rounds that take turns: here, and with gym-anytrading and
PPO of stable-baselines3 in their own environment (benchmarks/README.md), at the same
prices of one asset and with the same networks, rollouts, epochs and minibatches. It
keeps every round, and the load of the machine then. Both print the table of what is
kept: the median of rounds, and each.
"""

import argparse
import json
import os
import statistics
import subprocess
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import records

from ppo_jax import Config
from ppo_jax.component import as_arrays, program
from ppo_jax.envs.trading import PriceFile, RandomWalk, Trading
from ppo_jax.ppo import learner
from ppo_jax.schedules import Progress

HERE = Path(__file__).parent
SETTINGS = {
    "bars": 2000,
    "window": 252,
    "num_envs": 16,
    "num_steps": 128,
    "num_epochs": 4,
    "num_minibatches": 4,
    "steps": 100_000,
    "updates": 20,
    "peer_steps": 5_000,
    "peer_updates": 2,
    "rounds": 3,
}


def main() -> None:
    """Measures all, and prints the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--python", type=Path, help="that of gym-anytrading")
    parser.add_argument("--table", action="store_true", help="measure nothing")
    parser.add_argument("--results", type=Path, default=HERE / "results/trading.json")
    options = parser.parse_args()
    if not options.table:
        records.write(options.results, SETTINGS, measure(options.python))
    print("\n".join(table(records.read(options.results))))


def measure(python: Path) -> list[dict[str, Any]]:
    """Steps per second in every round, by what is done and by whom."""
    with tempfile.TemporaryDirectory() as home:
        path = Path(home) / "prices.csv"
        path.write_text("\n".join(lines()))
        env = Trading(PriceFile(str(path)), positions=(-1, 1), window=252)
        ours, theirs = (env_alone(env), training(env)), [python, HERE / PEER, path]
        rows: dict[tuple[str, str], dict[str, Any]] = {}
        for _ in range(SETTINGS["rounds"]):
            said = subprocess.check_output([*theirs, json.dumps(SETTINGS)], text=True)
            peer = json.loads(said.splitlines()[-1])
            for what, run in zip(peer, ours, strict=True):
                for by, speed in (("ppo_jax", run()), (NAME, peer[what])):
                    row = {"what": what, "by": by, "steps/s": [], "load": []}
                    row = rows.setdefault((what, by), row)
                    row["steps/s"].append(round(speed))
                    row["load"].append(round(os.getloadavg()[0], 1))
                    print(row, flush=True)
    return [*rows.values()]


PEER, NAME = "peer_anytrading.py", "gym-anytrading 2.0.0, stable-baselines3"


def lines() -> Iterator[str]:
    """A file of prices."""
    bars = RandomWalk(SETTINGS["bars"]).bars
    yield "Date,Open,Close"
    for day, begin, end in zip(bars.times, *bars.open.T, *bars.close.T, strict=True):
        yield f"{str(day)[:10]},{begin:.4f},{end:.4f}"


def env_alone(env: Trading) -> Any:
    """A run of random actions in as many episodes at once as there are in training."""
    num_envs = SETTINGS["num_envs"]
    steps = SETTINGS["steps"] // num_envs

    @jax.jit
    def play(env, key):
        def step(state, key):
            keys = jax.random.split(key, num_envs)
            actions = jax.random.randint(key, (num_envs,), 0, env.action_space.n)
            timestep, state = jax.vmap(env.step)(keys, state, actions)
            return state, timestep.reward.sum()

        first, *rest = jax.random.split(key, 2)
        _, state = jax.vmap(env.reset)(jax.random.split(first, num_envs))
        return jax.lax.scan(step, state, jax.random.split(rest[0], steps))[1]

    numbers, key = as_arrays(env), jax.random.key(0)
    return lambda: steps * num_envs / seconds(lambda: play(numbers, key))


def training(env: Trading) -> Any:
    """A run of updates, one program each."""
    names = ("num_envs", "num_steps", "num_epochs", "num_minibatches")
    config = Config(env=env, **{name: SETTINGS[name] for name in names})
    begun = learner.init(as_arrays(program(config)), jax.random.key(0))
    update = jax.jit(learner.iteration)
    updates = SETTINGS["updates"]

    def train():
        run = begun
        for _ in range(updates):
            run, _ = update(run, Progress.of(jnp.array(0.0), updates))
        return run.learner.params

    count = updates * config.num_envs * config.num_steps
    return lambda: count / seconds(train)


def seconds(run: Any) -> float:
    """What a run takes, once it is compiled."""
    jax.block_until_ready(run())
    begin = time.perf_counter()
    jax.block_until_ready(run())
    return time.perf_counter() - begin


def table(record: dict[str, Any]) -> Iterator[str]:
    """Lines of a markdown table, below one that says how it was measured."""
    yield records.caption(record)
    yield ""
    yield "| | by | steps/s, median | by round | load |"
    yield "|---|---|--:|---|---|"
    for row in record["rows"]:
        speeds, loads = (" ".join(map(str, row[k])) for k in ("steps/s", "load"))
        median = statistics.median(row["steps/s"])
        yield f"| {row['what']} | {row['by']} | {median:.0f} | {speeds} | {loads} |"


if __name__ == "__main__":
    main()

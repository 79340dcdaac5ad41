"""Steps per second of environments of all suites: alone, with resets, and in training.

    python benchmarks/environments.py
    python benchmarks/environments.py --table

The first measures every environment in a process of its own, whole suites in rounds; it
needs all suites. On the device, random allowed actions are taken in all environments at
once: by transitions alone, with a reset in each step, and with starts from a pool. On
the host, the suite's own vector of environments takes them, which resets by itself.
Training is `fit`, as a user calls it. Both print the table of what is kept: medians of
rounds.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import records

import ppo_jax
from ppo_jax import Config, envs, networks
from ppo_jax.arrays import devices
from ppo_jax.component import as_arrays
from ppo_jax.envs.env import Env, strong
from ppo_jax.envs.suites import make

HERE = Path(__file__).parent
STARTS = {
    "gymnax/CartPole-v1": 3,
    "playground/CartpoleBalance": 1,
    "brax/inverted_pendulum": 4,
    "jumanji/Snake-v1": 2,
    "xminigrid/MiniGrid-DoorKey-8x8": 2,
    "craftax/Craftax-Classic-Symbolic-v1": 1,
    "gymnasium/HalfCheetah-v5": None,
}
"""Starts in the pool of an environment, per rollout; None: it is on the host."""
WAYS = ("transitions", "with resets", "with a pool", "in training")
SETTINGS = {"num_envs": 64, "num_steps": 64, "seconds": 2.0, "updates": 60, "rounds": 3}
LIMIT = 900
"""Seconds that a process may take."""


def main() -> None:
    """Measures all, and prints the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--one", choices=STARTS, help="measure this one alone")
    parser.add_argument("--table", action="store_true", help="measure nothing")
    path = HERE / "results/environments.json"
    parser.add_argument("--results", type=Path, default=path)
    options = parser.parse_args()
    if options.one:
        devices.prepare()
        print(json.dumps(measured(options.one)))
        return
    if not options.table:
        records.write(options.results, SETTINGS, rows())
    print("\n".join(table(records.read(options.results))))


def rows() -> list[dict[str, Any]]:
    """Every round of every environment, with the load of the machine before it."""
    found: dict[str, dict[str, Any]] = {}
    for _ in range(SETTINGS["rounds"]):
        for name in STARTS:
            row = found.setdefault(name, {"env": name, "load": [], "steps/s": []})
            row["load"].append(round(os.getloadavg()[0], 1))
            words = [sys.executable, __file__, "--one", name]
            said = subprocess.check_output(words, text=True, timeout=LIMIT)
            row["steps/s"].append(json.loads(said.splitlines()[-1]))
            print(row, flush=True)
    return [*found.values()]


def measured(name: str) -> dict[str, int]:
    """Steps per second of an environment, by way."""
    size = STARTS[name]
    if size is None:
        speeds = {"with resets": on_the_host(name), "in training": training(name)}
    else:
        env, pool = make(name), envs.ResetPool(name, size=size)
        speeds = {
            "transitions": alone(env, env.transition),
            "with resets": alone(env, env.step),
            "with a pool": alone(pool, pool.step),
            "in training": training(pool),
        }
    return {way: round(speed) for way, speed in speeds.items()}


def alone(env: Env, step: Callable[..., Any]) -> float:
    """Of random actions in all environments, rollout after rollout."""
    shape = (SETTINGS["num_envs"], SETTINGS["num_steps"])

    @jax.jit
    def rollout(state: Any, key: jax.Array) -> Any:
        def one(state, key):
            keys = jax.random.split(key, shape[0])
            masks = jax.vmap(env.action_mask, axis_size=shape[0])(state)
            actions = jax.vmap(lambda key, mask: drawn(env, key, mask))(keys, masks)
            timestep, state = jax.vmap(step)(keys, state, actions)
            return strong(state), (timestep.reward.sum(), timestep.terminated.any())

        first, *rest = jax.random.split(key, 1 + shape[1])
        state = jax.vmap(env.renew)(jax.random.split(first, shape[0]), state)
        return jax.lax.scan(one, strong(state), jnp.stack(rest))

    state = jax.jit(jax.vmap(lambda key: as_arrays(env).reset(key)[1]))(
        jax.random.split(jax.random.key(0), shape[0])
    )
    state, _ = jax.block_until_ready(rollout(strong(state), jax.random.key(1)))
    begin, count = time.perf_counter(), 0
    while time.perf_counter() - begin < SETTINGS["seconds"] or count < 3:
        state, _ = jax.block_until_ready(rollout(state, jax.random.key(2 + count)))
        count += 1
    return count * np.prod(shape) / (time.perf_counter() - begin)


def drawn(env: Env, key: jax.Array, mask: Any) -> jax.Array:
    """A random action, allowed where there is a mask."""
    space = env.action_space
    if isinstance(space, envs.Box):
        low, high = np.array(space.low), np.array(space.high)
        return jax.random.uniform(key, low.shape, minval=low, maxval=high)
    logits = jnp.zeros(space.n) if mask is None else jnp.where(mask, 0.0, -jnp.inf)
    return jax.random.categorical(key, logits)


def on_the_host(name: str) -> float:
    """Of a vector of the suite's own environments, one after the other."""
    import gymnasium

    vector = gymnasium.make_vec(
        name.partition("/")[2], SETTINGS["num_envs"], vectorization_mode="sync"
    )
    vector.reset(seed=0)
    begin, count = time.perf_counter(), 0
    while time.perf_counter() - begin < SETTINGS["seconds"]:
        vector.step(vector.action_space.sample())
        count += 1
    return count * vector.num_envs / (time.perf_counter() - begin)


def training(env: Any) -> float:
    """The median over phases of `fit`, once all is compiled."""
    sizes = {name: SETTINGS[name] for name in ("num_envs", "num_steps")}
    config = Config(
        env,
        **sizes,
        total_timesteps=SETTINGS["updates"] * sizes["num_envs"] * sizes["num_steps"],
        phase_updates=SETTINGS["updates"] // 6,
        eval_phases=SETTINGS["updates"],
        eval_episodes=1,
        network=networks.ActorCritic(torso=networks.Mlp(hidden=(64, 64))),
    )
    return statistics.median(ppo_jax.fit(config).curves["time/fps"].values)


def table(record: dict[str, Any]) -> Iterator[str]:
    """Lines of a markdown table, below one that says how it was measured."""
    yield records.caption(record)
    yield ""
    yield f"| environment | {' | '.join(WAYS)} | of rounds, in turn | load |"
    yield "|---|" + "--:|" * len(WAYS) + "---|---|"
    for row in record["rows"]:
        rounds = row["steps/s"]
        speeds = [[one[way] for one in rounds if way in one] for way in WAYS]
        medians = [f"{statistics.median(x):,.0f}" if x else "–" for x in speeds]
        each = "; ".join(" ".join(map(str, one.values())) for one in rounds)
        loads = " ".join(map(str, row["load"]))
        yield f"| `{row['env']}` | {' | '.join(medians)} | {each} | {loads} |"


if __name__ == "__main__":
    main()

"""What a population costs: speed, memory, and the share of its generations.

    populations.py --sizes 1 8 32 128 --evorl PATH_OF_PYTHON CHECKOUT

Members train on CartPole, play episodes for their fitness, and evolve, over all devices
there are; a generation is all three. evorl takes turns with us, on one device and on as
many as we use; the better is told.
"""

import argparse
import math
import os
import statistics
import time
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
from measure import ROLLOUT_LENGTH, last_line

from ppo_jax import Config, LogUniform, Uniform, pbt
from ppo_jax.host import distributed, mesh, training
from ppo_jax.pbt import PBT
from ppo_jax.ppo import population
from ppo_jax.schedules import Progress

PEER = Path(__file__).parent / "peer_evorl.py"
SPACE = {
    "optimizer.learning_rate": LogUniform(1e-5, 1e-2),
    "terms.surrogate.clip_eps": Uniform(0.05, 0.3),
}


def parse_arguments():
    """Returns the command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--sizes", nargs="+", type=int, default=[1, 8, 32, 128])
    parser.add_argument("--num-envs", type=int, default=16)
    parser.add_argument("--interval", type=int, default=10, help="updates between two")
    parser.add_argument("--generations", type=int, default=3)
    parser.add_argument("--episodes", type=int, default=16, help="of an evaluation")
    parser.add_argument(
        "--evorl", nargs=2, metavar=("PYTHON", "CHECKOUT"), help="compare with evorl"
    )
    parser.add_argument("--timeout", type=float, default=600.0, help="seconds of a run")
    return parser.parse_args()


def experiment(size, options):
    """CartPole as in the other benchmarks, with a population unless it is of one."""
    rules = PBT(SPACE, size=size, selector=pbt.Truncation(0.5)) if size > 1 else None
    return Config("CartPole-v1", num_envs=options.num_envs, pbt=rules)


def timed(function, *arguments):
    """What a function returned, and the seconds until that was there."""
    began = time.perf_counter()
    output = jax.block_until_ready(function(*arguments))
    return output, time.perf_counter() - began


def memory(config, progress, count):
    """MiB of the state alone, and of a whole phase."""
    members = training.start(config)
    needed = population.advance.lower(members, progress, count).compile()
    needed = needed.memory_analysis()
    state = needed.argument_size_in_bytes
    whole = state + needed.output_size_in_bytes + needed.temp_size_in_bytes
    return state / 2**20, (whole - needed.alias_size_in_bytes) / 2**20


def measure(size, options):
    """Devices; seconds of a generation and of its exploit and explore, medians."""
    config = experiment(size, options)
    layout, members = mesh.spread(lambda: training.start(config))
    progress = Progress.at(np.linspace(0.0, 0.5, options.interval))
    wholes, evolutions = [], []
    for number in range(1 + options.generations):
        (members, _), advancing = timed(
            layout.advance, members, progress, np.int32(options.interval)
        )
        (returns, _), playing = timed(
            layout.run_episodes,
            *(members.runs.learner, jax.random.key(number), options.episodes, True),
        )
        evolving = 0.0
        if config.pbt is not None:
            fitness = layout.put(layout.fetch(returns).mean(axis=1))
            members = members.replace(fitness=fitness)
            keys = jax.random.split(jax.random.key(number), size)
            (members, _), evolving = timed(layout.evolve, config.pbt, members, keys)
        wholes.append(advancing + playing + evolving)
        evolutions.append(evolving)
    middle = statistics.median(wholes[1:]), statistics.median(evolutions[1:])
    return len(layout.devices), *middle


def measure_peer(size, devices, options):
    """Steps/s of evorl, on one device or on as many as ours, whichever is faster."""
    python, checkout = options.evorl
    found = []
    for count in sorted({1, devices}):
        flag = f"--xla_force_host_platform_device_count={count}"
        command = [python, str(PEER), "--source", checkout, "--size", str(size)]
        for name in ("num_envs", "interval", "generations", "episodes"):
            command += ["--" + name.replace("_", "-"), str(getattr(options, name))]
        line = last_line(command, options.timeout, os.environ | {"XLA_FLAGS": flag})
        found += [] if line is None else [float(line)]
    return max(found, default=math.nan)


def main():
    """Prints a markdown table, a line per size."""
    options = parse_arguments()
    distributed.prepare()
    print(
        "| members | steps/s | per member | evorl | exploit + explore "
        "| state, MiB per member | phase, MiB per member |"
    )
    print("|--:|--:|--:|--:|--:|--:|--:|")
    for size in options.sizes:
        devices, seconds, evolving = measure(size, options)
        peer = measure_peer(size, devices, options) if options.evorl else math.nan
        progress = Progress.at(np.zeros(options.interval))
        count = jnp.int32(options.interval)
        state, whole = memory(experiment(size, options), progress, count)
        steps = options.interval * options.num_envs * ROLLOUT_LENGTH
        print(
            f"| {size} | {size * steps / seconds:,.0f} | {steps / seconds:,.0f} "
            f"| {peer:,.0f} | {evolving / seconds:.2%} "
            f"| {state / size:.2f} | {whole / size:.2f} |",
            flush=True,
        )


if __name__ == "__main__":
    main()

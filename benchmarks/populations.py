"""What a population costs: speed, memory, and the share of its generations.

python benchmarks/populations.py --sizes 1 8 32 128
"""

import argparse
import statistics
import time

import jax
import jax.numpy as jnp
from measure import ROLLOUT_LENGTH

from ppo_jax import Config, LogUniform, Uniform, pbt, training
from ppo_jax.pbt import PBT, population

SPACE = {
    "optimizer.learning_rate": LogUniform(1e-5, 1e-2),
    "terms.0.clip_eps": Uniform(0.05, 0.3),
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


def memory(members, progress, count):
    """MiB of the state alone, and of a whole phase."""
    needed = population.advance.lower(members, progress, count).compile()
    needed = needed.memory_analysis()
    state = needed.argument_size_in_bytes
    whole = state + needed.output_size_in_bytes + needed.temp_size_in_bytes
    return state / 2**20, (whole - needed.alias_size_in_bytes) / 2**20


def measure(size, options):
    """Seconds of a phase and of exploit + explore, medians; MiB of state and phase."""
    config = experiment(size, options)
    members = training.start(config)
    progress = jnp.linspace(0.0, 0.5, options.interval, dtype=jnp.float32)
    count = jnp.int32(options.interval)
    needed = memory(members, progress, count)
    phases, generations = [], []
    for number in range(1 + options.generations):
        (members, _), seconds = timed(population.advance, members, progress, count)
        phases.append(seconds)
        if config.pbt is not None:
            fitness = jnp.arange(size, dtype=jnp.float32)
            members = members.replace(fitness=fitness)
            keys = jax.random.split(jax.random.key(number), size)
            (members, _), seconds = timed(population.evolve, config.pbt, members, keys)
            generations.append(seconds)
    evolving = statistics.median(generations[1:]) if generations else 0.0
    return statistics.median(phases[1:]), evolving, *needed


def main():
    """Prints a markdown table, a line per size."""
    options = parse_arguments()
    print(
        "| members | steps/s | per member | exploit + explore "
        "| state, MiB per member | phase, MiB per member |"
    )
    print("|--:|--:|--:|--:|--:|--:|")
    for size in options.sizes:
        seconds, evolving, state, whole = measure(size, options)
        steps = options.interval * options.num_envs * ROLLOUT_LENGTH
        print(
            f"| {size} | {size * steps / seconds:,.0f} | {steps / seconds:,.0f} "
            f"| {evolving / (evolving + seconds):.2%} "
            f"| {state / size:.2f} | {whole / size:.2f} |",
            flush=True,
        )


if __name__ == "__main__":
    main()

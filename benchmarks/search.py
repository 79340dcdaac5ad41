"""Population-based training against random search, on one experiment.

Both have the same members: the same first draws of numbers from the same ranges, the
same keys, steps and evaluations. Random search leaves them alone, PBT lets them evolve.
Who is best is decided by the last evaluation, and measured on fresh episodes.

    python benchmarks/search.py experiments/pbt_pendulum.py --set "env='Acrobot-v1'"
"""

import argparse
import dataclasses
import json
import time
from pathlib import Path

import jax.numpy as jnp
import numpy as np

from ppo_jax.host.devices import streams
from ppo_jax.host.loop import evaluation, training
from ppo_jax.host.metrics.members import fittest
from ppo_jax.host.run_dir import experiment
from ppo_jax.pbt import Maximize
from ppo_jax.ppo import population
from ppo_jax.schedules import Progress
from ppo_jax.sweeps import settings
from ppo_jax.sweeps.aggregate import interval, probability_of_improvement

SEEDS = 1000
"""Between two repetitions."""


def parse_arguments():
    """Returns the command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("experiment", type=Path)
    parser.add_argument("--members", type=int, default=16)
    parser.add_argument("--repetitions", type=int, default=4)
    parser.add_argument(
        "--set", nargs="+", default=[], metavar="PATH=VALUE", help="other fields"
    )
    parser.add_argument("--episodes", type=int, default=256, help="at the end")
    return parser.parse_args()


def train(config, evolves):
    """Members at the end of their budget, with their last fitness."""
    members = training.start(config)
    for done in range(0, config.num_updates, config.pbt.interval):
        progress = Progress.of(
            done + np.arange(config.pbt.interval), config.num_updates
        )
        count = min(config.pbt.interval, config.num_updates - done)
        members, _ = population.advance(members, progress, jnp.int32(count))
        returns, _ = evaluation.evaluate(
            members, config.seed, done + count, config.eval_episodes
        )
        fitness = jnp.float32(returns.mean(axis=1))
        members = dataclasses.replace(members, fitness=fitness)
        if evolves and done + count < config.num_updates:
            keys = streams.generation(config.seed, done + count, config.num_members)
            members, _ = population.evolve(config.pbt, members, keys)
    return members


def search(config, episodes, evolves):
    """Returns of the best and of the median member, on fresh episodes."""
    began = time.perf_counter()
    members = train(config, evolves)
    returns, _ = evaluation.evaluate(members, config.seed, SEEDS * SEEDS, episodes)
    mean = returns.mean(axis=1)
    best = fittest(np.asarray(members.fitness))
    return {
        "best": float(mean[best]),
        "median": float(np.median(mean)),
        "seconds": round(time.perf_counter() - began, 1),
    }


def table(found):
    """Lines of a markdown table; `found` is `{what: [[PBT, random], ...]}`."""
    yield "| member | PBT | random | difference, 95 % | P(PBT better), 95 % |"
    yield "|---|--:|--:|--:|--:|"
    for what, pairs in found.items():
        ours, theirs = np.array(pairs).T[..., None]
        low, high = interval(lambda x: x.mean(axis=(-2, -1)), ours - theirs)
        chance = probability_of_improvement(ours, theirs)
        least, most = interval(probability_of_improvement, ours, theirs)
        yield (
            f"| {what} | {ours.mean():.1f} | {theirs.mean():.1f} "
            f"| {(ours - theirs).mean():+.1f} ({low:+.1f} to {high:+.1f}) "
            f"| {chance:.2f} ({least:.2f} to {most:.2f}) |"
        )


def main():
    """Runs the repetitions, one after the other, in one process."""
    options = parse_arguments()
    config, names = experiment.load_with_names(options.experiment, [], "search.py")
    (setting,) = settings.grid(options.set, names)
    config = settings.apply(config, setting)
    assert config.pbt is not None and config.pbt.fitness == Maximize()
    pbt = dataclasses.replace(config.pbt, size=options.members)
    found = {"best": [], "median": []}
    for repetition in range(options.repetitions):
        seeded = dataclasses.replace(config, pbt=pbt, seed=SEEDS * repetition)
        ours, theirs = (search(seeded, options.episodes, x) for x in (True, False))
        print(
            json.dumps({"seed": seeded.seed, "pbt": ours, "random": theirs}), flush=True
        )
        for what, pairs in found.items():
            pairs.append([ours[what], theirs[what]])
    print("\n".join(table(found)))


if __name__ == "__main__":
    main()

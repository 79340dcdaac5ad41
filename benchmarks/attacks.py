"""What it costs to train under attack, as a ratio to the same update without.

python benchmarks/attacks.py --repeats 5
"""

import argparse
import statistics
import time

import jax
import jax.numpy as jnp
import numpy as np
from measure import ROLLOUT_LENGTH

from ppo_jax import Config, adversaries, attacks, networks, terms
from ppo_jax.host.loop import training
from ppo_jax.ppo import population
from ppo_jax.schedules import Progress

SETTINGS = {
    "none": None,
    "PGD-3 on half of the rows": adversaries.Mixed(attacks.Pgd(steps=3)),
    "PGD-3 on a quarter, room for half": adversaries.Mixed(ratio=0.25),
    "PGD-3 on all rows": adversaries.Mixed(ratio=1.0, max_percent=100),
    "PGD-3 on half, room for all": adversaries.Mixed(ratio=0.5, max_percent=100),
    "regularizer, PGD-3 on half": adversaries.Regularizer(ratio=0.5, max_percent=50),
    "regularizer, PGD-3 on all rows": adversaries.Regularizer(),
}


def parse_arguments():
    """Returns the command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--num-envs", type=int, default=64)
    parser.add_argument("--updates", type=int, default=20)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--recurrent", action="store_true")
    return parser.parse_args()


def experiment(adversary, options):
    """CartPole as in the other benchmarks, with normalised observations."""
    smooth = () if adversary is None else (terms.RobustKL(),)
    return Config(
        "CartPole-v1",
        num_envs=options.num_envs,
        num_steps=ROLLOUT_LENGTH,
        total_timesteps=options.updates * ROLLOUT_LENGTH * options.num_envs,
        obs_clip=10.0,
        network=networks.ActorCritic(
            memory=networks.Gru(size=128) if options.recurrent else None
        ),
        terms=(terms.Surrogate(), terms.Value(), terms.Entropy(), *smooth),
        adversary=adversary,
    )


def seconds(members, updates):
    """Members after some updates, and how long they took."""
    progress = Progress.at(np.linspace(0.0, 0.5, updates))
    began = time.perf_counter()
    members, _ = population.advance(members, progress, jnp.int32(updates))
    jax.block_until_ready(members)
    return members, time.perf_counter() - began


def main():
    """Trains with every setting in turn, and prints a markdown table."""
    options = parse_arguments()
    members, took = {}, {name: [] for name in SETTINGS}
    for name, adversary in SETTINGS.items():
        members[name] = training.start(experiment(adversary, options))
    for _ in range(1 + options.repeats):
        for name in SETTINGS:
            members[name], time_taken = seconds(members[name], options.updates)
            took[name].append(time_taken)
    print("| adversary | ms per update | ratio | first call, s |")
    print("|---|--:|--:|--:|")
    for name, (first, *rest) in took.items():
        ratios = [x / y for x, y in zip(rest, took["none"][1:], strict=True)]
        print(
            f"| {name} | {1e3 * statistics.median(rest) / options.updates:.1f} "
            f"| {statistics.median(ratios):.2f} | {first:.1f} |"
        )


if __name__ == "__main__":
    main()

"""What a generation of a population costs: speed, memory, and the share of evolving.

Members train on CartPole, play episodes for their fitness, and evolve, over all devices
there are; a generation is all three.
"""

import statistics
import time

import jax
import numpy as np
from measure import Timing, generation_parser, report

from ppo_jax import Config, LogUniform, Uniform, pbt
from ppo_jax.arrays import devices
from ppo_jax.host.devices import mesh
from ppo_jax.host.loop import training
from ppo_jax.pbt import PBT
from ppo_jax.ppo import population
from ppo_jax.schedules import Progress

SPACE = {
    "optimizer.learning_rate": LogUniform(1e-5, 1e-2),
    "terms.surrogate.clip_eps": Uniform(0.05, 0.3),
}


def experiment(options):
    """CartPole as in the other benchmarks, with a population unless it is of one."""
    size, rules = options.members, None
    if size > 1:
        rules = PBT(SPACE, size=size, selector=pbt.Truncation(0.5))
    return Config(
        "CartPole-v1",
        num_envs=options.num_envs,
        num_steps=options.num_steps,
        pbt=rules,
        seed=options.seed,
    )


def timed(function, *arguments):
    """What a function returned, and the seconds until that was there."""
    began = time.perf_counter()
    output = jax.block_until_ready(function(*arguments))
    return output, time.perf_counter() - began


def memory(config, updates):
    """MiB of the state alone, and of a whole phase."""
    members, progress = training.start(config), Progress.at(np.zeros(updates))
    needed = population.advance.lower(members, progress, np.int32(updates)).compile()
    needed = needed.memory_analysis()
    state = needed.argument_size_in_bytes
    whole = state + needed.output_size_in_bytes + needed.temp_size_in_bytes
    return state / 2**20, (whole - needed.alias_size_in_bytes) / 2**20


def generations(config, options):
    """Returns `[P]` after the last, and seconds of all and of evolving, `[G, 2]`."""
    layout = mesh.layout_of(config, config.num_members)
    members = layout.making(training.start, config)()
    progress = Progress.at(np.linspace(0.0, 0.5, options.updates))
    seconds = []
    for number in range(1 + options.generations):
        (members, _), advancing = timed(
            layout.advance, members, progress, np.int32(options.updates)
        )
        (returns, _), playing = timed(
            layout.run_episodes,
            *(members.runs.learner, jax.random.key(number), options.episodes, True),
        )
        returns, evolving = layout.fetch(returns).mean(axis=1), 0.0
        if config.pbt is not None:
            members = members.replace(fitness=layout.put(returns))
            keys = jax.random.split(jax.random.key(number), config.num_members)
            (members, _), evolving = timed(layout.evolve, config.pbt, members, keys)
        seconds.append([advancing + playing + evolving, evolving])
    return returns, np.array(seconds)


def main():
    """Prints what a generation takes, the median of several."""
    options = generation_parser(__doc__).parse_args()
    devices.prepare()
    config = experiment(options)
    returns, ((first, _), *later) = generations(config, options)
    whole, evolving = (statistics.median(column) for column in zip(*later, strict=True))
    state, phase = memory(config, options.updates)
    report(
        options,
        Timing(None, compile_seconds=first - whole, seconds=whole),
        returns[None],
        evolving_share=round(evolving / whole, 5),
        state_mib_per_member=round(state / options.members, 3),
        phase_mib_per_member=round(phase / options.members, 3),
    )


if __name__ == "__main__":
    main()

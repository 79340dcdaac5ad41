"""How many kernels an update is: our PPO on CartPole, as XLA compiles it."""

import time

import jax
import numpy as np
from deviceless import h100
from measure import absent_too, options, say_kernels
from ours import experiment, parser

from ppo_jax.arrays import devices
from ppo_jax.host.devices import mesh, streams
from ppo_jax.ppo import population
from ppo_jax.schedules import Progress


def lowered(config, members, layout):
    """The programs that make so many members, and train them."""
    keys = streams.members(config.seed, members)

    def begin(config, seed):
        return population.init(config, keys)

    making = layout.making(begin, config)
    begun = layout.described(jax.eval_shape(lambda: begin(config, config.seed)))
    progress = Progress.of(np.arange(1), config.num_updates)
    return making.lower(), layout.advance.lower(begun, progress, np.int32(1))


def main():
    """Prints the number, of one device and one update."""
    arguments = absent_too(parser()).parse_args()
    devices.prepare()
    absent = [h100()] if arguments.absent else []
    config, members = experiment(arguments), arguments.members
    start = time.perf_counter()
    layout = mesh.Layout(absent) if absent else mesh.layout_of(config, members)
    (device, *_) = layout.devices
    programs = lowered(config, members, layout)
    _, training = [program.compile(options(device)) for program in programs]
    say_kernels(training, device, time.perf_counter() - start)


if __name__ == "__main__":
    main()

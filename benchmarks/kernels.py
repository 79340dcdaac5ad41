"""How many kernels an update is: our PPO on CartPole, as XLA compiles it."""

import jax
import numpy as np
from deviceless import h100
from measure import absent_too, say_kernels
from ours import experiment, parser

from ppo_jax.arrays import devices
from ppo_jax.host.devices import mesh, streams
from ppo_jax.ppo import population
from ppo_jax.schedules import Progress


def lowered(config, members, layout):
    """The program that trains so many members."""
    keys = streams.members(config.seed, members)
    begun = layout.described(jax.eval_shape(lambda: population.init(config, keys)))
    progress = Progress.of(np.arange(1), config.num_updates)
    return layout.advance.lower(begun, progress, np.int32(1))


def main():
    """Prints the number, of one device and one update."""
    arguments = absent_too(parser()).parse_args()
    devices.prepare()
    absent = [h100()] if arguments.absent else []
    config, members = experiment(arguments), arguments.members
    layout = mesh.Layout(absent) if absent else mesh.layout_of(config, members)
    say_kernels(lowered(config, members, layout), layout.devices[0])


if __name__ == "__main__":
    main()

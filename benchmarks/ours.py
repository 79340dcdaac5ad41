"""Trains our PPO on CartPole at the size that the peers are measured at."""

import dataclasses
import time

import jax
from measure import Timing, argument_parser, mean_returns, report

from ppo_jax import Config, critics, networks, optimizers, schedules, terms
from ppo_jax.arrays import devices
from ppo_jax.host.devices import streams
from ppo_jax.host.loop import phases
from ppo_jax.host.loop.readiness import ready
from ppo_jax.host.run_dir.recording import Memory
from ppo_jax.ppo import population

MEMORIES = {"Gru": networks.Gru, "MinGru": networks.MinGru}


def parser():
    """Returns the command line: that of the peers, and what only we vary."""
    parser = argument_parser(__doc__)
    parser.add_argument("--width", type=int, help="of all layers, and of the memory")
    parser.add_argument(
        "--memory", default="Gru", choices=MEMORIES, help="if --recurrent (Gru)"
    )
    parser.add_argument("--quantiles", type=int, help="of a critic that has some")
    parser.add_argument("--microbatches", type=int, default=1, help="of a minibatch")
    parser.add_argument(
        "--channels", type=int, nargs="+", help="of convolutions, on MinAtar's Breakout"
    )
    parser.add_argument(
        "--compute-dtype", default="float32", help="of hidden layers (float32)"
    )
    return parser


def experiment(arguments):
    """CartPole as the peers have it, or Breakout; they clip values too."""
    if arguments.quantiles is None:
        critic = critics.Scalar(clip=critics.MeanOnly())
    else:
        critic = critics.Quantile(arguments.quantiles, clip=critics.PerQuantile())
    learning = {"max_grad_norm": None, "schedule": schedules.Constant()}
    return Config(
        env="Breakout-MinAtar" if arguments.channels else "CartPole-v1",
        num_envs=arguments.num_envs,
        num_steps=arguments.num_steps,
        num_microbatches=arguments.microbatches,
        phase_updates=arguments.updates,
        total_timesteps=arguments.updates * arguments.num_steps * arguments.num_envs,
        network=network(arguments),
        critic=critic,
        terms=(terms.Surrogate(), terms.Value(clip_eps=0.2), terms.Entropy()),
        optimizer=optimizers.Adam(**learning if arguments.learning else {}),
        seed=arguments.seed,
    )


def network(arguments):
    """As wide as is asked for."""
    if arguments.recurrent:
        made = recurrent(arguments.width or 128, MEMORIES[arguments.memory])
    elif arguments.channels:
        made = convolutional(tuple(arguments.channels), arguments.width or 128)
    else:
        made = feed_forward(arguments.width or 64)
    return dataclasses.replace(made, compute_dtype=arguments.compute_dtype)


def feed_forward(width):
    """Two hidden layers of actor and critic each."""
    return networks.ActorCritic(torso=networks.Mlp(hidden=(width, width)))


def convolutional(channels, width):
    """Convolutions and a hidden layer that actor and critic share."""
    torso = networks.Cnn(channels=channels, hidden=(width,))
    return networks.ActorCritic(torso=torso, shared=True)


def recurrent(width, memory=networks.Gru):
    """A memory that actor and critic share: a GRU has as many products as purejaxrl."""
    return networks.ActorCritic(
        torso=networks.Mlp(hidden=(width, width)),
        memory=memory(size=width),
        critic_hidden=(width,),
        shared=True,
    )


def trained(config, members=1):
    """Trains members of one experiment, with a key each, as `ppo_jax.train` does.

    Returns:
        What it took, to make the members included, as in programs of others; and mean
        returns `[N, P]`.
    """
    keys = streams.members(config.seed, members)

    def begin(config, seed):
        return population.init(config, keys)

    start = time.perf_counter()
    layout, begun = ready(config, begin, Memory())
    jax.block_until_ready(begun)
    compile_seconds = time.perf_counter() - start
    making = layout.making(begin, config)
    make = making.lower().compile()
    del begun  # There may be no room for it twice.
    start = time.perf_counter()
    begun = jax.block_until_ready(make(*making.args))
    _, history = phases.advance(config, layout, begun, 0, config.num_updates)
    seconds = time.perf_counter() - start
    sums = (history[f"episodes/{name}"] for name in ("return_sum", "count"))
    return Timing(history, compile_seconds, seconds), mean_returns(*sums)


def main():
    """Trains once and prints the figures."""
    arguments = parser().parse_args()
    devices.prepare()
    report(arguments, *trained(experiment(arguments), arguments.members))


if __name__ == "__main__":
    main()

"""Trains our PPO on CartPole at the size that the peers are measured at."""

import jax
import jax.numpy as jnp
import numpy as np
from measure import ROLLOUT_LENGTH, Timing, argument_parser, measure, report

from ppo_jax import Config, networks
from ppo_jax.component import program
from ppo_jax.ppo import population
from ppo_jax.schedules import Progress


def main() -> None:
    """Trains once, as a population of one, and prints the figures."""
    arguments = argument_parser(__doc__).parse_args()
    network = networks.ActorCritic()
    if arguments.recurrent:  # As many products of 128 by 128 as purejaxrl's.
        network = networks.ActorCritic(
            torso=networks.Mlp(hidden=(128, 128)),
            memory=networks.Gru(size=128),
            critic_hidden=(128,),
            shared=True,
        )
    config = Config(
        env="CartPole-v1",
        num_envs=arguments.num_envs,
        num_steps=ROLLOUT_LENGTH,
        total_timesteps=arguments.updates * ROLLOUT_LENGTH * arguments.num_envs,
        network=network,
    )
    keys = jax.random.split(jax.random.key(arguments.seed), 1)
    progress = Progress.of(np.arange(arguments.updates), arguments.updates)

    begun = measure(lambda keys: population.init(program(config), keys), keys)
    trained = measure(
        lambda members: population.advance(
            members, progress, jnp.int32(arguments.updates)
        )[1],
        begun.output,
    )
    timing = Timing(
        output=trained.output,
        compile_seconds=begun.compile_seconds + trained.compile_seconds,
        seconds=begun.seconds + trained.seconds,
    )
    ended = {k: v[-5:].sum() for k, v in timing.output.items() if "episodes" in k}
    mean_return = ended["episodes/return_sum"] / jnp.maximum(ended["episodes/count"], 1)
    report("ours", arguments, timing, mean_return)


if __name__ == "__main__":
    main()

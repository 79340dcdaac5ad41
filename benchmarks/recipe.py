"""What everything at once costs: our PPO with all of its systems, or without them.

Both have the same recurrent network. With all systems it learns from twin critics of
32 quantiles, clipped one by one, and from the CVaR of returns, whose scale is followed;
VGS stands in front of AdaptiveUPGD; an early stop listens to the KL divergence; and
the critics are asked again after each update.
"""

import dataclasses

from measure import argument_parser, report
from ours import recurrent, trained

from ppo_jax import (
    Config,
    ReturnNormalization,
    controllers,
    critics,
    optimizers,
    terms,
)
from ppo_jax.arrays import devices
from ppo_jax.metrics.explained import Appraisal

SYSTEMS = {
    "return_scale": ReturnNormalization(),
    "critic": critics.Quantile(32, clip=critics.PerQuantile()),
    "num_critics": 2,
    "terms": (
        terms.Surrogate(),
        terms.Value(clip_eps=0.2),
        terms.Entropy(),
        terms.CVaR(),
    ),
    "optimizer": optimizers.AdaptiveUPGD(learning_rate=1e-4, vgs=optimizers.VGS()),
    "early_stop": controllers.KlStop(target=10.0),
    "appraisal": Appraisal(),
}
"""The stop listens, but for so high a divergence that both do all steps."""


def plain(arguments):
    """Recurrent PPO on CartPole."""
    return Config(
        env="CartPole-v1",
        num_envs=arguments.num_envs,
        num_steps=arguments.num_steps,
        total_timesteps=arguments.updates * arguments.num_steps * arguments.num_envs,
        network=recurrent(128),
        seed=arguments.seed,
    )


def main():
    """Trains once and prints the figures."""
    parser = argument_parser(__doc__)
    parser.add_argument("--plain", action="store_true", help="without the systems")
    arguments = parser.parse_args()
    devices.prepare()
    config = plain(arguments)
    if not arguments.plain:
        config = dataclasses.replace(config, **SYSTEMS)
    report(arguments, *trained(config))


if __name__ == "__main__":
    main()

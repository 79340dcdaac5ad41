"""Pendulum-v1 by a population that finds its own numbers, from ranges that are wide.

Expect the median member at about −190, although many first draws learn nothing alone.
"""

from ppo_jax import PBT, Config, LogUniform, Uniform, pbt, terms

config = Config(
    env="Pendulum-v1",
    total_timesteps=400_000,
    num_envs=16,
    num_steps=128,
    num_epochs=10,
    num_minibatches=8,
    obs_clip=10.0,
    terms=(terms.Surrogate(), terms.Value(), terms.Entropy()),
    pbt=PBT(
        {
            "optimizer.learning_rate": LogUniform(1e-5, 1e-2),
            "gamma": Uniform(0.8, 0.999, factor=1.02),
            "gae_lambda": Uniform(0.8, 1.0, factor=1.05),
            "terms.surrogate.clip_eps": Uniform(0.05, 0.4, factor=1.1),
            "terms.entropy.coef": LogUniform(1e-5, 1e-2),
        },
        size=8,
        interval=10,
        selector=pbt.Truncation(ratio=0.25),
    ),
)

"""MinAtar Breakout by a population, over the ranges that a recipe for PBT names.

Expect the fittest member above an evaluation return of 10 after 5 000 000 steps each.
"""

from ppo_jax import PBT, Config, LogUniform, Uniform, networks, pbt, terms

config = Config(
    env="Breakout-MinAtar",
    total_timesteps=5_000_000,
    num_envs=64,
    num_steps=128,
    num_minibatches=8,
    network=networks.ActorCritic(
        torso=networks.Mlp(hidden=(128, 64), activation="relu")
    ),
    terms=(terms.Surrogate(), terms.Value(), terms.Entropy()),
    pbt=PBT(
        {
            "optimizer.learning_rate": LogUniform(1e-5, 5e-4),
            "terms.0.clip_eps": Uniform(0.05, 0.3, factor=1.1, resample=0.2),
            "terms.2.coef": Uniform(1e-4, 1e-2),
        },
        size=8,
        interval=10,
        selector=pbt.Truncation(ratio=0.25),
        readiness=pbt.Readiness(share=0.75),
    ),
)

"""MinAtar Breakout by a population that searches what a recipe for PBT names.

Ranges are those of the task: with a learning rate below 5e-4 and an entropy coefficient
below 0.01, those of the recipe, all members ended at the same 6.5. Expect a median
evaluation return of about 60, from 1 300 000 steps each on.
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
            "optimizer.learning_rate": LogUniform(3e-4, 5e-3),
            "terms.surrogate.clip_eps": Uniform(0.05, 0.3, factor=1.1, resample=0.2),
            "terms.entropy.coef": LogUniform(3e-3, 5e-2),
        },
        size=8,
        interval=10,
        selector=pbt.Truncation(ratio=0.25),
        readiness=pbt.Readiness(share=0.75),
    ),
)

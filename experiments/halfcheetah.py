"""HalfCheetah-v5 of gymnasium, stepped on the host; it needs the extra `mujoco`.

The numbers are those of CleanRL, with eight environments. Expect an evaluation return
of 1100 after 200 000 steps (eight seeds: docs/results.md), and of about 2900 after
1 000 000, which one seed had.
"""

from ppo_jax import Config, ReturnNormalization, optimizers, terms

config = Config(
    env="gymnasium/HalfCheetah-v5",
    total_timesteps=1_000_000,
    num_envs=8,
    num_steps=256,
    num_epochs=10,
    num_minibatches=32,
    obs_clip=10.0,
    return_scale=ReturnNormalization(),
    terms=(terms.Surrogate(), terms.Value(), terms.Entropy(coef=0.0)),
    optimizer=optimizers.Adam(learning_rate=3e-4),
    eval_episodes=8,
)

"""CartPole-v1, feed-forward: 475 or more of 500 within 500 000 steps."""

from ppo_jax import Config, optimizers

config = Config(
    env="CartPole-v1",
    total_timesteps=500_000,
    num_envs=8,
    num_steps=128,
    optimizer=optimizers.Adam(learning_rate=1e-3),
)

"""MinAtar Breakout with convolutions: 5 000 000 steps."""

from ppo_jax import Config, networks, optimizers

config = Config(
    env="Breakout-MinAtar",
    total_timesteps=5_000_000,
    num_envs=64,
    num_steps=128,
    num_minibatches=8,
    network=networks.ActorCritic(torso=networks.Cnn()),
    optimizer=optimizers.Adam(learning_rate=1e-3),
)

"""Snake of Jumanji on a board of 12×12, from the flattened board, with masked actions.

Expect a training return near 19, as many fruits, after 2 000 000 steps. Evaluations
play the most likely actions, which long go round in circles: for most of the time
theirs are far below. Needs `pip install 'ppo_jax[jumanji]'`.
"""

from ppo_jax import Config, networks, optimizers

config = Config(
    env="jumanji/Snake-v1",
    total_timesteps=2_000_000,
    num_envs=64,
    num_steps=64,
    num_minibatches=8,
    network=networks.ActorCritic(
        torso=networks.Mlp(hidden=(128, 64), activation="relu")
    ),
    optimizer=optimizers.Adam(learning_rate=1e-3),
    eval_episodes=8,
)

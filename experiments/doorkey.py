"""DoorKey-8x8 of XLand-MiniGrid, feed-forward: a key, a locked door, and a goal.

Expect a training return of 0.97 after 1 000 000 of 2 000 000 steps, and an evaluation
return near 0.9: agents that never take a chance get stuck in some rooms. Needs
`pip install 'ppo_jax[xminigrid]'`.
"""

from ppo_jax import Config, networks, optimizers

config = Config(
    env="xminigrid/MiniGrid-DoorKey-8x8",
    total_timesteps=2_000_000,
    num_envs=64,
    num_steps=64,
    num_minibatches=8,
    network=networks.ActorCritic(
        torso=networks.Mlp(hidden=(128, 64), activation="relu")
    ),
    optimizer=optimizers.Adam(learning_rate=1e-3),
)

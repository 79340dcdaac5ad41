"""Snake of Jumanji on a board of 12×12, from the flattened board, with masked actions.

Expect an evaluation return of 19, as many fruits, after 2 000 000 steps (eight seeds:
docs/results.md). Evaluations play the most likely actions, which early on go round in
circles: until then theirs are far below those of training. Needs
`pip install 'ppo_jax[jumanji]'`.
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

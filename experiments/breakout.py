"""MinAtar Breakout, from the flattened grid.

Expect a training return above 24, on most seeds far above, after 5 000 000 steps.
"""

from ppo_jax import Config, networks, optimizers, terms

config = Config(
    env="Breakout-MinAtar",
    total_timesteps=5_000_000,
    num_envs=64,
    num_steps=128,
    num_minibatches=8,
    network=networks.ActorCritic(
        torso=networks.Mlp(hidden=(128, 64), activation="relu")
    ),
    terms=(terms.Surrogate(), terms.Value(), terms.Entropy(coef=0.02)),
    optimizer=optimizers.Adam(learning_rate=2.5e-3),
)

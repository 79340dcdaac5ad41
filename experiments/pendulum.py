"""Pendulum-v1, continuous actions.

Expect an evaluation return of about −180 after 1 000 000 steps.
"""

from ppo_jax import Config, optimizers, terms

config = Config(
    env="Pendulum-v1",
    total_timesteps=1_000_000,
    num_envs=16,
    num_steps=128,
    num_epochs=10,
    num_minibatches=8,
    gamma=0.9,
    gae_lambda=0.95,
    obs_clip=10.0,
    terms=(terms.Surrogate(), terms.Value(), terms.Entropy(coef=0.0)),
    optimizer=optimizers.Adam(learning_rate=1e-3),
)

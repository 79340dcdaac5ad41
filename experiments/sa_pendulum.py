"""Pendulum-v1 that holds when its observations are changed: SA-PPO.

An opponent who misleads plays in half of the environments: what a push leads to is on
no clean trajectory. Expect an evaluation return of about −220 after 1 000 000 steps, as
without it, and what `docs/results.md` says under attack.
"""

from ppo_jax import (
    Config,
    ReturnNormalization,
    adversaries,
    attacks,
    opponents,
    optimizers,
    schedules,
    terms,
)

ATTACK = attacks.Pgd(eps=0.3, schedule=schedules.Warmup(fraction=0.75))

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
    return_scale=ReturnNormalization(),
    terms=(
        terms.Surrogate(),
        terms.Value(),
        terms.Entropy(coef=0.0),
        terms.RobustKL(coef=0.03),
    ),
    opponent=opponents.Opponent(ATTACK, opponents.misled, share=0.5),
    adversary=adversaries.Regularizer(ATTACK, ratio=0.5, max_percent=50),
    optimizer=optimizers.Adam(learning_rate=1e-3),
)

"""CartPole-v1 that holds when its observations are changed: SA-PPO.

Expect an evaluation return of 500, the most there is, after 1 000 000 steps, and what
`docs/results.md` says under attack. Returns are scaled, or the critic saturates and its
agent drifts to the border, attacked or not.
"""

from ppo_jax import (
    Config,
    ReturnNormalization,
    adversaries,
    attacks,
    optimizers,
    schedules,
    terms,
)

config = Config(
    env="CartPole-v1",
    total_timesteps=1_000_000,
    num_envs=16,
    num_steps=128,
    obs_clip=10.0,
    return_scale=ReturnNormalization(),
    terms=(
        terms.Surrogate(),
        terms.Value(),
        terms.Entropy(coef=0.0),
        terms.RobustKL(coef=0.03),
    ),
    adversary=adversaries.Regularizer(
        attacks.Pgd(eps=2.5, schedule=schedules.Warmup(fraction=0.75)),
        ratio=0.5,
        max_percent=50,
    ),
    optimizer=optimizers.Adam(learning_rate=1e-3),
)

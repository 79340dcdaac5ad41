"""CartPole-v1, trained while its observations are attacked: SA-PPO.

Expect an evaluation return of 500, the most there is, after 1 000 000 steps. Under
attack it holds against some opponents and falls to others: see `docs/results.md`.
"""

from ppo_jax import Config, adversaries, attacks, optimizers, schedules, terms

config = Config(
    env="CartPole-v1",
    total_timesteps=1_000_000,
    num_envs=8,
    num_steps=128,
    obs_clip=10.0,
    terms=(
        terms.Surrogate(),
        terms.Value(),
        terms.Entropy(),
        terms.RobustKL(coef=0.01),
    ),
    adversary=adversaries.Regularizer(
        attacks.Pgd(eps=1.5, schedule=schedules.Warmup(fraction=0.5)),
        ratio=0.5,
        max_percent=50,
    ),
    optimizer=optimizers.Adam(learning_rate=1e-3),
)

"""CartPole-v1 against an opponent who shows what the critic fears, and SA-PPO.

Expect an evaluation return of 500, the most there is, after 1 000 000 steps, and what
`docs/results.md` says under attack. A push on what is seen makes the cart drift; only
attention to its position, which no clean trajectory asks for, turns it back. So the
opponent plays in every rollout. A long horizon shows what a drift leads to.
"""

from ppo_jax import (
    Config,
    adversaries,
    attacks,
    opponents,
    optimizers,
    schedules,
    terms,
)

EPS = 0.75
WARMUP = schedules.Warmup(fraction=0.5)

config = Config(
    env="CartPole-v1",
    total_timesteps=1_000_000,
    num_envs=8,
    num_steps=128,
    gamma=0.995,
    obs_clip=10.0,
    terms=(
        terms.Surrogate(),
        terms.Value(),
        terms.Entropy(coef=0.0),
        terms.RobustKL(coef=0.001),
    ),
    opponent=opponents.Opponent(attacks.Fgsm(EPS, schedule=WARMUP)),
    adversary=adversaries.Regularizer(
        attacks.Pgd(EPS, schedule=WARMUP), ratio=0.5, max_percent=50
    ),
    optimizer=optimizers.Adam(learning_rate=1e-3),
)

"""Pendulum-v1 that holds when its observations are changed: SA-PPO.

A policy that swings up at once has to tell small angles apart, so that robustness costs
return here. Expect an evaluation return below the −180 of `experiments/pendulum.py`
after 1 000 000 steps, and a flatter curve of `python -m ppo_jax.robustness`.
"""

from ppo_jax import Config, adversaries, attacks, optimizers, schedules, terms

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
    terms=(
        terms.Surrogate(),
        terms.Value(),
        terms.Entropy(coef=0.0),
        terms.RobustKL(coef=1.0),
    ),
    adversary=adversaries.Regularizer(
        attacks.Pgd(eps=0.2, schedule=schedules.Warmup(fraction=0.75)),
        ratio=0.5,
        max_percent=50,
    ),
    optimizer=optimizers.Adam(learning_rate=1e-3),
)

"""A recurrent agent that recalls a cue although every observation is changed: SA-PPO.

Expect an evaluation return of 1.0, every cue recalled, after 300 000 steps, and what
`experiments/sa_gain.py` prints under attack.
"""

from ppo_jax import Config, adversaries, attacks, networks, optimizers, schedules, terms
from ppo_jax.envs.probes import RecallCue

config = Config(
    env=RecallCue(delay=20),
    total_timesteps=300_000,
    num_envs=64,
    num_steps=64,
    obs_clip=10.0,
    network=networks.ActorCritic(memory=networks.Lstm(size=64)),
    terms=(terms.Surrogate(), terms.Value(), terms.Entropy(), terms.RobustKL(coef=0.3)),
    adversary=adversaries.Mixed(
        attacks.Pgd(eps=1.0, schedule=schedules.Warmup(fraction=0.5))
    ),
    optimizer=optimizers.Adam(learning_rate=1e-3),
)

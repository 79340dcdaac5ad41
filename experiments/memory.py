"""Recall a cue after a random delay of up to 20 steps.

Expect an evaluation return of 1.0, every cue recalled, after 300 000 steps; 0.5 without
a memory.
"""

from ppo_jax import Config, networks, optimizers
from ppo_jax.envs.probes import RecallCue

config = Config(
    env=RecallCue(delay=20),
    total_timesteps=300_000,
    num_envs=64,
    num_steps=64,
    network=networks.ActorCritic(memory=networks.Lstm(size=64)),
    optimizer=optimizers.Adam(learning_rate=1e-3),
)

"""The memory chain of bsuite: what was shown first is asked for after 20 steps.

Expect an evaluation return of 1 from 160 000 steps on; without the memory, 0 for ever
(eight seeds each: docs/results.md).
"""

from ppo_jax import Config, envs, networks, optimizers

config = Config(
    env=envs.Gymnax("MemoryChain-bsuite", params={"memory_length": 20}),
    total_timesteps=500_000,
    num_envs=64,
    num_steps=64,
    network=networks.ActorCritic(memory=networks.Gru(size=64)),
    optimizer=optimizers.Adam(learning_rate=1e-3),
)

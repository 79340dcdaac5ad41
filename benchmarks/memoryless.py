"""The agent of `experiments/memory_chain.py` without its memory."""

from ppo_jax import Config, envs, optimizers

config = Config(
    env=envs.Gymnax("MemoryChain-bsuite", params={"memory_length": 20}),
    total_timesteps=500_000,
    num_envs=64,
    num_steps=64,
    optimizer=optimizers.Adam(learning_rate=1e-3),
)

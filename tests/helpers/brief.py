"""Experiments of a few updates, and noise that compiles quickly."""

import jax
import jax.numpy as jnp

from ppo_jax import networks
from ppo_jax.config import Config

MLP = networks.ActorCritic(torso=networks.Mlp(hidden=(8,)))


def experiment(env, **changes):
    fields = {
        "env": env,
        "num_envs": 8,
        "num_steps": 8,
        "num_epochs": 2,
        "num_minibatches": 2,
        "network": MLP,
        "total_timesteps": 64 * 6,
        "phase_updates": 2,
        "eval_phases": 2,
        "eval_episodes": 4,
    }
    return Config(**fields | changes)


def signs(key, shape):
    """A sampler of noise for optimisers: one sign for all weights of a leaf."""
    return jnp.full(shape, 1.0 - 2.0 * (jax.random.key_data(key)[0] % 2))

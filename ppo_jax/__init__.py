"""PPO in JAX: recurrent, distributional, risk-aware, robust, and in populations."""

from ppo_jax import (
    controllers,
    critics,
    envs,
    networks,
    optimizers,
    schedules,
    standardization,
    terms,
)
from ppo_jax.config import Config

__version__ = "0.1.0"

__all__ = [
    "Config",
    "controllers",
    "critics",
    "envs",
    "networks",
    "optimizers",
    "schedules",
    "standardization",
    "terms",
]

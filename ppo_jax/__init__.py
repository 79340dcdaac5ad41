"""PPO in JAX: recurrent, distributional, risk-aware, robust, and in populations."""

from ppo_jax import (
    adversaries,
    appraisal,
    attacks,
    controllers,
    critics,
    envs,
    networks,
    opponents,
    optimizers,
    pbt,
    schedules,
    snapshot,
    standardization,
    terms,
)
from ppo_jax.config import Config
from ppo_jax.pbt import PBT
from ppo_jax.return_scale import ReturnNormalization
from ppo_jax.space import Choice, LogUniform, NearOne, Uniform

__version__ = "0.1.0"

__all__ = [
    "PBT",
    "Choice",
    "Config",
    "LogUniform",
    "NearOne",
    "ReturnNormalization",
    "Uniform",
    "adversaries",
    "appraisal",
    "attacks",
    "controllers",
    "critics",
    "envs",
    "networks",
    "opponents",
    "optimizers",
    "pbt",
    "schedules",
    "snapshot",
    "standardization",
    "terms",
]

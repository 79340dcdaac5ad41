"""PPO in JAX: recurrent, distributional, risk-aware, robust, and in populations."""

from typing import TYPE_CHECKING

from ppo_jax import (
    attacks,
    controllers,
    critics,
    envs,
    networks,
    normalization,
    optimizers,
    pbt,
    schedules,
    terms,
)
from ppo_jax.attacks import adversaries, opponents
from ppo_jax.component.paths import replace
from ppo_jax.config import Config
from ppo_jax.envs import deferred
from ppo_jax.metrics import explained as appraisal
from ppo_jax.normalization import ReturnNormalization
from ppo_jax.normalization import advantages as standardization
from ppo_jax.pbt import PBT
from ppo_jax.pbt.ranges import Choice, LogUniform, NearOne, Uniform
from ppo_jax.policy import Policy
from ppo_jax.ppo import snapshot

if TYPE_CHECKING:
    from ppo_jax.host.agents.fitting import fit, load
    from ppo_jax.host.agents.trained import Trained
    from ppo_jax.sweeps.fitting import fit_all, load_all

__version__ = "0.1.0"

__getattr__ = deferred.names(
    __name__,
    {
        "Trained": "ppo_jax.host.agents.trained",
        "fit": "ppo_jax.host.agents.fitting",
        "fit_all": "ppo_jax.sweeps.fitting",
        "load": "ppo_jax.host.agents.fitting",
        "load_all": "ppo_jax.sweeps.fitting",
    },
)
"""Training is imported by whoever trains."""

__all__ = [
    "PBT",
    "Choice",
    "Config",
    "LogUniform",
    "NearOne",
    "Policy",
    "ReturnNormalization",
    "Trained",
    "Uniform",
    "adversaries",
    "appraisal",
    "attacks",
    "controllers",
    "critics",
    "envs",
    "fit",
    "fit_all",
    "load",
    "load_all",
    "networks",
    "normalization",
    "opponents",
    "optimizers",
    "pbt",
    "replace",
    "schedules",
    "snapshot",
    "standardization",
    "terms",
]

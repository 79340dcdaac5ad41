"""Population-based training."""

from ppo_jax.pbt.config import PBT, Maximize, Minimize
from ppo_jax.pbt.exploit import Copy, Reinitialize
from ppo_jax.pbt.explore import (
    Copiers,
    Everyone,
    Perturb,
    PerturbOrResample,
    Resample,
)
from ppo_jax.pbt.select import BinaryTournament, Readiness, Truncation

__all__ = [
    "PBT",
    "BinaryTournament",
    "Copiers",
    "Copy",
    "Everyone",
    "Maximize",
    "Minimize",
    "Perturb",
    "PerturbOrResample",
    "Readiness",
    "Reinitialize",
    "Resample",
    "Truncation",
]

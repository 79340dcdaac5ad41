"""Losses and risk measures: pure functions of arrays with any leading axes."""

from ppo_jax.losses.policy import (
    LOG_RATIO_LIMIT,
    approx_kl,
    approx_kl_k1,
    clipped_surrogate_loss,
)
from ppo_jax.losses.quantile import (
    clip_each,
    quantile_huber_loss,
    quantile_midpoints,
)
from ppo_jax.losses.risk import cvar, cvar_weights
from ppo_jax.losses.value import clip_around, squared_error

__all__ = [
    "LOG_RATIO_LIMIT",
    "approx_kl",
    "approx_kl_k1",
    "clip_around",
    "clip_each",
    "clipped_surrogate_loss",
    "cvar",
    "cvar_weights",
    "quantile_huber_loss",
    "quantile_midpoints",
    "squared_error",
]

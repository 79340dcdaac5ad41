"""Losses and risk measures: pure functions of arrays with any leading axes."""

from ppo_jax.losses.categorical import (
    cross_entropy_loss,
    evenly_spaced_atoms,
    project,
    shifted_cross_entropy,
    two_hot,
)
from ppo_jax.losses.discrete import Law, clip_mean, clip_mean_and_std
from ppo_jax.losses.lagrangian import dual_ascent
from ppo_jax.losses.policy import (
    LOG_RATIO_LIMIT,
    advantage_weights,
    approx_kl,
    approx_kl_k1,
    clipped_surrogate_loss,
)
from ppo_jax.losses.quantile import quantile_huber_loss, quantile_midpoints
from ppo_jax.losses.risk import (
    MIN_TAIL,
    EmpiricalTail,
    cvar,
    cvar_weights,
    empirical_cvar,
    law_cvar,
    linear_cvar_weights,
    tail_advantage,
)
from ppo_jax.losses.robust import policy_smoothness_loss
from ppo_jax.losses.value import clip_around, squared_error

"""Terms of the objective: components that say what an example costs.

A term returns a loss per example `[L, b]` and metrics of the same shape. It does not
weight, mask or average: `objective` alone does.
"""

from typing import NamedTuple

import jax.numpy as jnp

from ppo_jax import losses
from ppo_jax.component import component, require_range
from ppo_jax.critics import ValueDist
from ppo_jax.distributions import Distribution
from ppo_jax.state import Batch
from ppo_jax.types import Array, Metrics


class Forward(NamedTuple):
    """What one pass over a minibatch produced."""

    policy: Distribution
    value: ValueDist
    log_ratio: Array
    """ln π(a) − ln π_old(a), `[L, b]`."""


@component
class Term:
    """A summand of the objective."""

    def __call__(self, out: Forward, batch: Batch) -> tuple[Array, Metrics]:
        """Loss and metrics per example, `[L, b]`."""
        raise NotImplementedError


@component
class Surrogate(Term):
    """PPO's clipped surrogate (Schulman et al., 2017, eq. 7)."""

    clip_eps: float = 0.2

    def validate(self) -> None:
        """Raises a `ValueError` for a range that is not positive."""
        require_range(self, "clip_eps", "a number > 0", lambda eps: eps > 0)

    def __call__(self, out: Forward, batch: Batch) -> tuple[Array, Metrics]:
        loss = losses.clipped_surrogate_loss(
            out.log_ratio, batch.advantage, self.clip_eps
        )
        extent = jnp.abs(out.log_ratio)
        ratio = jnp.exp(
            jnp.clip(out.log_ratio, -losses.LOG_RATIO_LIMIT, losses.LOG_RATIO_LIMIT)
        )
        outside = jnp.abs(ratio - 1.0) > self.clip_eps
        return loss, {
            "train/policy_loss": loss,
            "train/approx_kl": losses.approx_kl(out.log_ratio),
            "train/approx_kl_k1": losses.approx_kl_k1(out.log_ratio),
            "train/clip_fraction": outside.astype(jnp.float32),
            "train/ratio_mean": ratio,
            "train/log_ratio_extreme_fraction": (extent > 10).astype(jnp.float32),
            "train/log_ratio_clamp_frac": (extent > losses.LOG_RATIO_LIMIT).astype(
                jnp.float32
            ),
        }


@component
class Value(Term):
    """Regression of every critic to the λ-returns, averaged over critics."""

    coef: float = 0.5

    def __call__(self, out: Forward, batch: Batch) -> tuple[Array, Metrics]:
        loss = out.value.loss(batch.target).mean(axis=-1)
        return self.coef * loss, {"train/value_loss": loss}


@component
class Entropy(Term):
    """A bonus for the entropy of the policy."""

    coef: float = 0.01

    def __call__(self, out: Forward, batch: Batch) -> tuple[Array, Metrics]:
        entropy = out.policy.entropy()
        return -self.coef * entropy, {"train/policy_entropy": entropy}

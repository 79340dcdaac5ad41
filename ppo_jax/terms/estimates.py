"""Estimates of the CVaR that a constraint limits: from a rollout, or predicted."""

from typing import ClassVar

import jax.numpy as jnp
from jax.typing import ArrayLike

from ppo_jax.component import component
from ppo_jax.component.bounds import FiniteNonNegative
from ppo_jax.critics import pessimistic_cvar
from ppo_jax.errors import missing
from ppo_jax.terms.term import Context, Forward, Loss, Prepared, RolloutTargets
from ppo_jax.types import Metrics


@component
class Estimate:
    """An estimate of the constrained CVaR, compared with its limit."""

    reads_critic: ClassVar[bool] = False
    """Whether the estimate is computed from the predictions of critics."""

    def prepare(
        self, tail: Metrics, limit: ArrayLike, rollout: RolloutTargets
    ) -> Prepared:
        """Returns rows that examples need, leaves `[T, B]`, and metrics of the rollout.

        Args:
            tail: Metrics of the tail of outcomes.
            limit: Least CVaR that is accepted.
            rollout: The rollout.
        """
        raise missing(self, "prepare")

    def __call__(
        self, out: Forward, context: Context, alpha: ArrayLike, limit: ArrayLike
    ) -> Loss:
        """Returns a loss before the multiplier, and metrics, per example `[L, b]`.

        Here or in `prepare` it says `train/cvar_estimate`, in units of the quantity,
        and `train/cvar_gap`, (limit − estimate) / unit, which moves the multiplier.
        """
        raise missing(self, "__call__")


@component
class Empirical(Estimate):
    """The mean of the worst outcomes of the rollout."""

    def prepare(
        self, tail: Metrics, limit: ArrayLike, rollout: RolloutTargets
    ) -> Prepared:
        cvar, some = tail["train/cvar_empirical"], tail["train/cvar_tail_size"] > 0
        gap = jnp.where(some, (limit - cvar) / rollout.unit, 0.0)
        return (), {"train/cvar_estimate": cvar, "train/cvar_gap": gap}

    def __call__(
        self, out: Forward, context: Context, alpha: ArrayLike, limit: ArrayLike
    ) -> Loss:
        return jnp.zeros_like(out.log_ratio), {}


@component
class Predicted(Estimate):
    """The CVaR predicted by the critic with the least mean, over the whole update.

    It is the mean of the CVaRs of the states. Where states differ, that mean is greater
    than the CVaR over all of them, and less noisy. Like the empirical tail, it moves
    the policy through the multiplier.

    Attributes:
        through: Weight ≥ 0 of max(0, limit − CVaR) / unit per example, times the
            multiplier, in the loss of the critics. It changes what critics predict,
            not the policy. 1 reproduces systems that were trained with this loss.

    Raises:
        ValueError: At construction, for a negative number.
    """

    through: FiniteNonNegative[float] = 0.0

    reads_critic = True

    def prepare(
        self, tail: Metrics, limit: ArrayLike, rollout: RolloutTargets
    ) -> Prepared:
        return jnp.broadcast_to(rollout.unit, rollout.weight.shape), {}

    def __call__(
        self, out: Forward, context: Context, alpha: ArrayLike, limit: ArrayLike
    ) -> Loss:
        cvar = context.scale.decode(pessimistic_cvar(out.value, alpha))
        gap = (limit - cvar) / context.prepared
        metrics = {"train/cvar_estimate": cvar, "train/cvar_gap": gap}
        return self.through * jnp.maximum(gap, 0.0), metrics

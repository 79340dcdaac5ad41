"""The CVaR that a constraint is about: of the tail of a rollout, or predicted."""

from typing import ClassVar

import jax.numpy as jnp
from jax.typing import ArrayLike

from ppo_jax.component import component
from ppo_jax.component.bounds import NonNegative
from ppo_jax.critics import pessimistic_cvar
from ppo_jax.errors import missing
from ppo_jax.ppo import diagnostics
from ppo_jax.terms.term import Context, Forward, Loss, Prepared, RolloutTargets
from ppo_jax.types import Metrics


@component
class Estimate:
    """The CVaR that a constraint is about, held against its limit."""

    reads_critic: ClassVar[bool] = False
    """Whether it is what critics predict."""

    def prepare(
        self, tail: Metrics, limit: ArrayLike, rollout: RolloutTargets
    ) -> Prepared:
        """What it says of a whole rollout, and what its examples need, `[T, B]`.

        Args:
            tail: What is known of the tail of outcomes.
            limit: Least CVaR that is accepted.
            rollout: The rollout.
        """
        raise missing(self, "prepare")

    def __call__(
        self, out: Forward, context: Context, alpha: ArrayLike, limit: ArrayLike
    ) -> Loss:
        """A loss of its own, before the multiplier, and metrics per example `[L, b]`.

        Here or in `prepare` it says `train/cvar_estimate`, in units of rewards, and
        `train/cvar_gap`, the mean of (limit − estimate) / unit, which moves the
        multiplier.
        """
        raise missing(self, "__call__")


@component
class Empirical(Estimate):
    """The mean of the worst outcomes of the rollout."""

    def prepare(
        self, tail: Metrics, limit: ArrayLike, rollout: RolloutTargets
    ) -> Prepared:
        cvar, some = tail["train/cvar_empirical"], tail["train/cvar_tail_size"] > 0
        per_unit = diagnostics.average(1 / rollout.unit, rollout.weight)
        gap = jnp.where(some, (limit - cvar) * per_unit, 0.0)
        return (), {"train/cvar_estimate": cvar, "train/cvar_gap": gap}

    def __call__(
        self, out: Forward, context: Context, alpha: ArrayLike, limit: ArrayLike
    ) -> Loss:
        return jnp.zeros_like(out.log_ratio), {}


@component
class Predicted(Estimate):
    """What the critic with the least mean predicts, averaged over the whole update.

    It is the mean of what each state has to fear, which is more than the CVaR over all
    of them where states differ, and less noisy. Like the tail it moves the policy, by
    the multiplier.

    Attributes:
        through: Weight ≥ 0 of max(0, limit − CVaR) / unit per example, times the
            multiplier, in the loss of the critics: they learn to fear less, not the
            policy. Systems that were trained so are reproduced with 1.

    Raises:
        ValueError: At construction, for a negative number.
    """

    through: NonNegative[float] = 0.0

    reads_critic = True

    def prepare(
        self, tail: Metrics, limit: ArrayLike, rollout: RolloutTargets
    ) -> Prepared:
        return rollout.unit, {}

    def __call__(
        self, out: Forward, context: Context, alpha: ArrayLike, limit: ArrayLike
    ) -> Loss:
        cvar = context.scale.decode(pessimistic_cvar(out.value, alpha))
        gap = (limit - cvar) / context.prepared
        metrics = {"train/cvar_estimate": cvar, "train/cvar_gap": gap}
        return self.through * jnp.maximum(gap, 0.0), metrics

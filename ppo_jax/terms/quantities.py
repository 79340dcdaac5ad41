"""Numbers of steps whose worst values are the risk."""

from typing import ClassVar

import jax.numpy as jnp

from ppo_jax import returns
from ppo_jax.component import component
from ppo_jax.errors import missing
from ppo_jax.terms.term import RolloutTargets
from ppo_jax.types import Array


@component
class Quantity:
    """A number per step of a rollout, whose worst values are the risk."""

    predicted: ClassVar[bool] = False
    """Whether critics predict this quantity."""
    at_once: ClassVar[bool] = False
    """Whether a sample is of one step alone, and blamed on its action alone."""
    negated: ClassVar[bool] = False
    """Whether samples are minus something that is seldom below 0."""

    def __call__(self, rollout: RolloutTargets) -> Array:
        """Returns samples `[T, B]`; lower is worse."""
        raise missing(self, "__call__")

    def unit(self, rollout: RolloutTargets) -> Array:
        """Returns what samples are divided by `[]`, beside standardised advantages."""
        return rollout.unit

    def answered(self, beyond: Array, rollout: RolloutTargets) -> Array:
        """Returns the excess over the value at risk that each action is blamed for.

        Args:
            beyond: The excess of each step's own sample, `[T, B]`; 0 without one.
            rollout: The rollout with these samples.
        """
        return beyond


@component
class Returns(Quantity):
    """The λ-return from each step on."""

    predicted = True

    def __call__(self, rollout: RolloutTargets) -> Array:
        return rollout.target


@component
class Rewards(Quantity):
    """The reward of each step, which the action of that step alone answers for.

    An action is not blamed for what comes later: `Returns()` are for that.
    """

    at_once = True

    def __call__(self, rollout: RolloutTargets) -> Array:
        return rollout.reward


@component
class Costs(Quantity):
    """Minus the cost that environments report of each step, if it is finite.

    A CVaR of −0.1 at α = 1 is a mean cost of 0.1 per step. An action is blamed for the
    costs that follow it, less as many times what a step costs on average: Σ γᵏ of the
    differences, to the end of its episode or of the rollout. So steps that cost as much
    as others are nobody's fault, and no episode is ended to save them. Where advantages
    do not vary, costs are in units of their own.

    References:
        Sutton et al., `Policy Gradient Methods for Reinforcement Learning with Function
        Approximation <https://papers.nips.cc/paper/1713>`_, 2000: the average reward.
    """

    negated = True

    def __call__(self, rollout: RolloutTargets) -> Array:
        return -rollout.cost

    def unit(self, rollout: RolloutTargets) -> Array:
        return jnp.where(jnp.isinf(rollout.unit), 1.0, rollout.unit)

    def answered(self, beyond: Array, rollout: RolloutTargets) -> Array:
        costly = (rollout.weight > 0) & jnp.isfinite(rollout.cost)
        average = beyond.sum() / jnp.maximum(costly.sum(), 1)
        beyond = jnp.where(costly, beyond - average, 0.0)
        return returns.to_go(beyond, rollout.discount)

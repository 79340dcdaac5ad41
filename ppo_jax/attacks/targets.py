"""The harms that adversaries of training maximise."""

import jax.numpy as jnp

from ppo_jax import losses
from ppo_jax.component import component
from ppo_jax.critics import pessimistic
from ppo_jax.errors import missing
from ppo_jax.state import Batch
from ppo_jax.terms.term import Forward
from ppo_jax.types import Array


@component
class Target:
    """The harm that an adversary maximises."""

    def __call__(self, seen: Forward, clean: Forward, batch: Batch) -> Array:
        """Returns the harm per example `[L, b]`.

        Args:
            seen: The network's outputs for perturbed observations.
            clean: The network's outputs for the true observations.
            batch: The rows.
        """
        raise missing(self, "__call__")


@component
class PolicyLoss(Target):
    """The surrogate without its clip: beyond the clip it would have no gradient."""

    def __call__(self, seen: Forward, clean: Forward, batch: Batch) -> Array:
        return losses.clipped_surrogate_loss(
            seen.log_ratio, batch.advantage, clip_eps=jnp.inf
        )


@component
class ValueLoss(Target):
    """The mean of the critics' losses."""

    def __call__(self, seen: Forward, clean: Forward, batch: Batch) -> Array:
        return seen.value.loss(batch.target).mean(axis=-1)


@component
class Divergence(Target):
    """KL(π(·|s) ‖ π(·|ŝ)), whatever the action: the maximal action difference.

    It has no gradient at the true observation: the attack needs a random start.
    """

    def __call__(self, seen: Forward, clean: Forward, batch: Batch) -> Array:
        return losses.policy_smoothness_loss(clean.policy, seen.policy)


@component
class LowValue(Target):
    """Minus the value: the adversary looks for observations of a low value."""

    def __call__(self, seen: Forward, clean: Forward, batch: Batch) -> Array:
        return -pessimistic(seen.value)

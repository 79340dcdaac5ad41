"""Estimators of KL(π_old ‖ π_new), the policy's distance from the one that acted."""

from typing import ClassVar

from ppo_jax import losses
from ppo_jax.component import component
from ppo_jax.errors import missing
from ppo_jax.networks.distributions import Distribution
from ppo_jax.types import Array


@component
class Divergence:
    """KL(π_old ‖ π_new) in nats, per example."""

    metric: ClassVar[str]
    """Name of the metric that is its mean over a minibatch."""
    reads_old_policy: ClassVar[bool] = False
    """Whether it needs the policy that acted, which is stored only if needed."""

    def __call__(self, log_ratio: Array, old: Distribution, new: Distribution) -> Array:
        """Returns the divergence `[...]`.

        Args:
            log_ratio: ln π_new(a) − ln π_old(a) of the sampled actions `[...]`.
            old: The policy that acted; `()` unless something reads it.
            new: The policy that learns.
        """
        raise missing(self, "__call__")


@component
class K1(Divergence):
    """−ln ratio: unbiased, and its gradient too; may be negative (Schulman, 2020)."""

    metric = "train/approx_kl_k1"

    def __call__(self, log_ratio: Array, old: Distribution, new: Distribution) -> Array:
        return losses.approx_kl_k1(log_ratio)


@component
class K3(Divergence):
    """ratio − 1 − ln ratio: unbiased, never negative (Schulman, 2020)."""

    metric = "train/approx_kl"

    def __call__(self, log_ratio: Array, old: Distribution, new: Distribution) -> Array:
        return losses.approx_kl(log_ratio)


@component
class ClosedForm(Divergence):
    """The divergence itself, over all actions, without the noise of sampled ones."""

    metric = "train/kl"
    reads_old_policy = True

    def __call__(self, log_ratio: Array, old: Distribution, new: Distribution) -> Array:
        return old.kl(new)

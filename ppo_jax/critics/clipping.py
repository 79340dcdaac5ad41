"""Ways to keep a predicted law close to an old one."""

from jax.typing import ArrayLike

from ppo_jax import losses
from ppo_jax.component import component
from ppo_jax.component.bounds import AtLeastOne
from ppo_jax.errors import missing
from ppo_jax.losses import Law
from ppo_jax.types import Array


@component
class Clip:
    """A way to keep a predicted law close to an old one."""

    def __call__(self, new: Law, old: Law, eps: ArrayLike) -> Array:
        """Returns the outcomes of `new`, moved to within ±`eps` of `old`'s."""
        raise missing(self, "__call__")


@component
class PerQuantile(Clip):
    """Every quantile stays within ±ε of the same quantile; the strictest."""

    def __call__(self, new: Law, old: Law, eps: ArrayLike) -> Array:
        return losses.clip_around(new.outcomes, old.outcomes, eps)


@component
class MeanOnly(Clip):
    """The mean stays within ±ε of the old one; the spread may become anything."""

    def __call__(self, new: Law, old: Law, eps: ArrayLike) -> Array:
        return losses.clip_mean(new, old, eps)


@component
class MeanAndVariance(Clip):
    """As `MeanOnly`, and the deviation stays below `factor` times the old one.

    Attributes:
        factor: Largest growth of the standard deviation in an update, ≥ 1.

    Raises:
        ValueError: At construction, for a factor below 1.
    """

    factor: AtLeastOne[float] = 2.0

    def __call__(self, new: Law, old: Law, eps: ArrayLike) -> Array:
        return losses.clip_mean_and_std(new, old, eps, self.factor)

"""A critic of quantiles, and ways to take the mean of their tail."""

import jax.numpy as jnp
from jax.typing import ArrayLike

from ppo_jax import losses
from ppo_jax.component import component
from ppo_jax.component.bounds import Count, Positive
from ppo_jax.critics.critic import Critic
from ppo_jax.errors import missing
from ppo_jax.losses import Law
from ppo_jax.types import Array


@component
class Tail:
    """A way to take the CVaR of quantiles."""

    def __call__(self, quantiles: Array, alpha: ArrayLike) -> Array:
        """Returns CVaR_α of quantiles in any order, `[..., N]` to `[...]`."""
        raise missing(self, "__call__")


@component
class StepTail(Tail):
    """The exact CVaR of N equally likely outcomes; see `losses.cvar_weights`."""

    def __call__(self, quantiles: Array, alpha: ArrayLike) -> Array:
        return losses.cvar(quantiles, alpha)


@component
class LinearTail(Tail):
    """CVaR of the lines through the quantiles; see `losses.linear_cvar_weights`."""

    def __call__(self, quantiles: Array, alpha: ArrayLike) -> Array:
        return losses.cvar(quantiles, alpha, losses.linear_cvar_weights)


@component
class Quantile(Critic):
    """Quantiles of the return at the midpoints (i + ½) / N.

    Predictions closer to a target than κ are pulled as by a squared error: the learned
    numbers are quantiles where κ is small against the spread of returns, and tend to
    expectiles, which are closer together, where it is large.

    Attributes:
        num_quantiles: Number of quantiles N ≥ 1.
        kappa: Error κ > 0 at which the Huber loss turns from a square to a line.
        tail: Way to take the CVaR of the quantiles, `StepTail` or `LinearTail`.
        clip: `PerQuantile`, `MeanOnly` or `MeanAndVariance`; None: no clipping.

    Raises:
        ValueError: At construction, for a number out of its range.
    """

    num_quantiles: Count = 32
    kappa: Positive[float] = 1.0
    tail: Tail = StepTail()

    @property
    def num_outputs(self) -> int:
        return self.num_quantiles

    def law(self, outputs: Array) -> Law:
        return Law(outputs, jnp.full_like(outputs, 1 / self.num_quantiles))

    def mean(self, outputs: Array) -> Array:
        return outputs.mean(axis=-1)

    def cvar(self, outputs: Array, alpha: ArrayLike) -> Array:
        return self.tail(outputs, alpha)

    def at(self, outputs: Array, levels: Array) -> Array:
        """Interpolates the quantiles linearly, and prolongs the first and last line."""
        middles = (jnp.arange(self.num_quantiles) + 0.5) / self.num_quantiles
        beyond = "extrapolate"
        return jnp.interp(levels, middles, jnp.sort(outputs), beyond, beyond)

    def loss(self, outputs: Array, target: Array) -> Array:
        return losses.quantile_huber_loss(outputs, target, self.kappa)

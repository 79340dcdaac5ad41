"""Policy heads: from numbers to a distribution of real actions."""

import jax
import jax.numpy as jnp

from ppo_jax.component import component, require_range
from ppo_jax.envs.env import Box
from ppo_jax.errors import missing
from ppo_jax.networks import distributions
from ppo_jax.networks.distributions import DiagGaussian, Distribution
from ppo_jax.types import Array


@component
class Head:
    """Makes a policy of what the actor's last layer puts out, A numbers by default.

    >>> @component
    ... class Sure(Head):
    ...     def num_free(self, space):
    ...         return 0
    ...
    ...     def policy(self, outputs, free, space):
    ...         return DiagGaussian(outputs, jnp.full_like(outputs, 0.1))
    """

    def num_outputs(self, space: Box) -> int:
        """Numbers that the last layer puts out, given actions of A components."""
        return len(space.low)

    def num_free(self, space: Box) -> int:
        """Parameters beside them, 0 at first, that depend on no observation."""
        return len(space.low)

    def policy(self, outputs: Array, free: Array, space: Box) -> Distribution:
        """The policy.

        Args:
            outputs: What the last layer puts out, `[T, B, num_outputs]`.
            free: What depends on no observation, `[num_free]`.
            space: The actions.
        """
        raise missing(self, "policy")


@component
class GaussianHead(Head):
    """For real actions: a Gaussian with a state-independent deviation, then a clip.

    Attributes:
        init_std: Deviation at the start, > 0.
    """

    init_std: float = 1.0

    def validate(self) -> None:
        """Raises a `ValueError` for a deviation out of range."""
        require_range(self, "init_std", "a number > 0", lambda std: std > 0)

    def policy(self, outputs: Array, free: Array, space: Box) -> Distribution:
        scale = self.init_std * jnp.exp(free)
        return _around(distributions.DiagGaussian, outputs, scale, space)


@component
class SquashedHead(Head):
    """For actions within bounds; σ = min_std + (max_std − min_std) · sigmoid(ρ).

    Attributes:
        min_std: Least deviation before squashing, > 0.
        max_std: Largest, more than `min_std`.
    """

    min_std: float = 0.2
    max_std: float = 1.5

    def validate(self) -> None:
        """Raises a `ValueError` for deviations that are not ordered."""
        require_range(self, "min_std", "a number > 0", lambda std: std > 0)
        if isinstance(self.min_std, float):
            expected = f"more than min_std = {self.min_std}"
            require_range(self, "max_std", expected, lambda std: std > self.min_std)

    def deviation(self, rho: Array) -> Array:
        """σ, between the bounds."""
        return self.min_std + (self.max_std - self.min_std) * jax.nn.sigmoid(rho)


@component
class TanhHead(SquashedHead):
    """A Gaussian squashed by tanh into the bounds of the actions."""

    def policy(self, outputs: Array, free: Array, space: Box) -> Distribution:
        scale = self.deviation(free)
        return _around(distributions.TanhGaussian, outputs, scale, space)


@component
class SigmoidHead(SquashedHead):
    """A Gaussian squashed by a sigmoid into the bounds of the actions."""

    def policy(self, outputs: Array, free: Array, space: Box) -> Distribution:
        scale = self.deviation(free)
        return _around(distributions.SigmoidGaussian, outputs, scale, space)


def _around(kind: type[DiagGaussian], loc: Array, scale: Array, space: Box):
    """A Gaussian of a kind with the same deviation everywhere."""
    return kind(loc, jnp.broadcast_to(scale, loc.shape), space.low, space.high)

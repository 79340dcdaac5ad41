"""Policy heads: they turn a layer's outputs into a distribution of actions."""

from typing import Any, ClassVar

import jax
import jax.numpy as jnp

from ppo_jax.component import component, concrete, require, require_range
from ppo_jax.component.bounds import Positive
from ppo_jax.envs.env import ActionSpace, Box, Discrete
from ppo_jax.errors import missing
from ppo_jax.networks import distributions
from ppo_jax.networks.distributions import DiagGaussian, Distribution
from ppo_jax.types import Array, Params


@component
class Head:
    """A head that makes a policy of the outputs of the actor's last layer.

    >>> @component
    ... class Sure(Head):
    ...     spaces = (Box,)
    ...
    ...     def policy(self, outputs, free, space, mask):
    ...         return DiagGaussian(outputs, jnp.full_like(outputs, 0.1))
    """

    spaces: ClassVar[tuple[type[ActionSpace], ...] | None] = None
    """Kinds of actions that the head suits; None: all."""

    def check(self, config: Any) -> None:
        """Checks that the head fits an experiment, when that is constructed.

        Raises:
            ValueError: If the head does not suit the actions.
        """
        if self.spaces is not None:
            space, name = config.env.action_space, "Config.network.head"
            kinds = " or ".join(kind.__name__ for kind in self.spaces)
            expected = f"a head for {space}, not for {kinds} alone"
            require(isinstance(space, self.spaces), name, self, expected)

    def num_outputs(self, space: ActionSpace) -> int:
        """Returns the outputs of the last layer: one per choice or real component."""
        if isinstance(space, Discrete):
            return space.n
        return len(space.low) if isinstance(space, Box) else sum(space.nvec)

    def free(self, space: ActionSpace) -> dict[str, int]:
        """Returns the counts, by name, of parameters that depend on no observation.

        These parameters are 0 at first; a checkpoint knows them by these names. Their
        gradients count in `train/grad_norm/other`, but for `log_std`, which has a
        metric of its own.
        """
        return {}

    def policy(
        self, outputs: Array, free: Params, space: ActionSpace, mask: Array | None
    ) -> Distribution:
        """Returns the policy.

        Args:
            outputs: Outputs of the last layer, `[T, B, num_outputs]`.
            free: Parameters that depend on no observation, by name.
            space: The actions.
            mask: True for legal choices `[T, B, n]`; None: all are legal.
        """
        raise missing(self, "policy")


@component
class LocationHead(Head):
    """Real actions around the outputs of the last layer; categorical discrete actions.

    The deviation of real actions depends on no observation.
    """

    kind: ClassVar[type[DiagGaussian]] = DiagGaussian

    def free(self, space: ActionSpace) -> dict[str, int]:
        return {"log_std": len(space.low)} if isinstance(space, Box) else {}

    def policy(
        self, outputs: Array, free: Params, space: ActionSpace, mask: Array | None
    ) -> Distribution:
        if not isinstance(space, Box):
            return distributions.categorical(outputs, space, mask)
        scale = jnp.broadcast_to(self.deviation(free["log_std"]), outputs.shape)
        return self.kind(outputs, scale, space.low, space.high)

    def deviation(self, rho: Array) -> Array:
        """Returns the deviation σ from its free parameters."""
        raise missing(self, "deviation")


@component
class GaussianHead(LocationHead):
    """For real actions: a Gaussian with a state-independent deviation, then a clip.

    Attributes:
        init_std: Deviation at the start, > 0.
    """

    init_std: Positive[float] = 1.0

    def deviation(self, rho: Array) -> Array:
        return self.init_std * jnp.exp(rho)


@component
class SquashedHead(LocationHead):
    """For actions within bounds; σ = min_std + (max_std − min_std) · sigmoid(ρ).

    Attributes:
        min_std: Least deviation before squashing, > 0.
        max_std: Largest deviation before squashing, more than `min_std`.
    """

    min_std: Positive[float] = 0.2
    max_std: float = 1.5

    def validate(self) -> None:
        """Raises a `ValueError` for deviations that are not ordered."""
        if concrete(self.min_std):
            expected = f"more than min_std = {self.min_std}"
            require_range(self, "max_std", expected, lambda std: std > self.min_std)

    def check(self, config: Any) -> None:
        super().check(config)
        space = config.env.action_space
        if isinstance(space, Box):
            finite = f"finite bounds {distributions.APART}"
            expected = f"a {type(self).__name__} for {finite}, not for {space}"
            fits = distributions.bounded(space.low, space.high)
            require(fits, "Config.network.head", self, expected)

    def deviation(self, rho: Array) -> Array:
        """Returns the deviation σ, between the bounds."""
        return self.min_std + (self.max_std - self.min_std) * jax.nn.sigmoid(rho)


@component
class TanhHead(SquashedHead):
    """A Gaussian squashed by tanh into the bounds of the actions."""

    kind = distributions.TanhGaussian


@component
class SigmoidHead(SquashedHead):
    """A Gaussian squashed by a sigmoid into the bounds of the actions."""

    kind = distributions.SigmoidGaussian

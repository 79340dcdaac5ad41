"""Groups of advantages whose mean and deviation standardise them."""

import jax
import jax.numpy as jnp

from ppo_jax import returns
from ppo_jax.component import component
from ppo_jax.component.bounds import Count
from ppo_jax.errors import missing, pair, require_alike, require_shape
from ppo_jax.types import Array

Scaled = tuple[Array, Array]
"""Standardised advantages, and whether each was set to 0."""


@component
class Standardization:
    """Brings advantages to mean 0 and deviation 1; see `returns.standardize`."""

    def __call__(self, advantage: Array, weight: Array, group: Array) -> Scaled:
        """Standardises advantages; advantages that do not vary become 0.

        Args:
            advantage: Advantages `[T, B]`.
            weight: Weights ≥ 0 of the advantages, `[T, B]`.
            group: The group of each step, int32 `[T, B]`; −1: one per environment.

        Returns:
            Advantages `[T, B]`, and whether each belongs to advantages that do not vary
            among themselves, bool `[T, B]`.
        """
        raise missing(self, "__call__")


def standardized(
    rule: Standardization, advantage: Array, weight: Array, group: Array
) -> Scaled:
    """Returns what a rule makes of advantages; arguments as of its call.

    Raises:
        Misfit: If that is anything but advantages, and a flag for each.

    >>> ones = jnp.ones((2, 2))
    >>> standardized(OverAll(), ones, ones, jnp.zeros((2, 2), int))[1].all().item()
    True
    """
    name, shape = type(rule).__name__, advantage.shape
    said = pair(name, rule(advantage, weight, group), "(advantages, flags)")
    require_shape(f"{name}: advantages", said[0], shape, "a number per step", "fiu")
    require_shape(f"{name}: flags", said[1], shape, "whether each is flat, bool", "b")
    return said


@component
class OverAll(Standardization):
    """Standardises all advantages of a rollout together."""

    def __call__(self, advantage: Array, weight: Array, group: Array) -> Scaled:
        scaled, flat = returns.standardize(advantage, weight)
        return scaled, jnp.broadcast_to(flat, advantage.shape)


@component
class PerEnv(Standardization):
    """Standardises environments one by one, if their rewards are very different."""

    def __call__(self, advantage: Array, weight: Array, group: Array) -> Scaled:
        scaled, flat = returns.standardize(advantage, weight, axis=0)
        return scaled, jnp.broadcast_to(flat[None], advantage.shape)


@component
class PerGroup(Standardization):
    """Standardises each group by itself, such as each instrument of a market.

    Attributes:
        num_groups: Groups that environments report, 0 … num_groups − 1. Steps without
            a group count as a group of their environment.

    Raises:
        ValueError: At construction, without groups.
    """

    num_groups: Count = 1

    def __call__(self, advantage: Array, weight: Array, group: Array) -> Scaled:
        require_alike(advantage=advantage, weight=weight, group=group)
        group = returns.group_index(group, self.num_groups)
        alone = group >= self.num_groups
        parts, flat = jax.lax.map(
            lambda index: returns.standardize(
                advantage, jnp.where(group == index, weight, 0.0)
            ),
            jnp.arange(self.num_groups),
        )
        own, still = PerEnv()(advantage, jnp.where(alone, weight, 0.0), group)
        flat = jnp.where(alone, still, flat[jnp.where(alone, 0, group)])
        return parts.sum(axis=0) + own, flat

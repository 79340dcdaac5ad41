"""Over which advantages a mean and a deviation are taken."""

import chex
import jax
import jax.numpy as jnp

from ppo_jax import returns
from ppo_jax.component import component
from ppo_jax.component.bounds import Count
from ppo_jax.errors import missing
from ppo_jax.types import Array

Scaled = tuple[Array, Array]
"""Standardised advantages, and where they were set to 0."""


@component
class Standardization:
    """Brings advantages to mean 0 and deviation 1; see `returns.standardize`."""

    def __call__(self, advantage: Array, weight: Array, group: Array) -> Scaled:
        """Standardised advantages, and where they were set to 0.

        Args:
            advantage: Advantages `[T, B]`.
            weight: Their weights ≥ 0 `[T, B]`.
            group: The group of each step, int32 `[T, B]`; −1: one per environment.

        Returns:
            Advantages `[T, B]`, and where they do not vary among those that they were
            compared with, bool `[T, B]`.
        """
        raise missing(self, "__call__")

    def unit(self, advantage: Array, weight: Array, group: Array) -> Array:
        """What advantages are divided by, `[T, B]`; arguments as of a call."""
        return jnp.broadcast_to(returns.deviation(advantage, weight), advantage.shape)


@component
class OverAll(Standardization):
    """All advantages of a rollout together."""

    def __call__(self, advantage: Array, weight: Array, group: Array) -> Scaled:
        scaled, flat = returns.standardize(advantage, weight)
        return scaled, jnp.broadcast_to(flat, advantage.shape)


@component
class PerEnv(Standardization):
    """Those of each environment apart: for environments of very different rewards."""

    def __call__(self, advantage: Array, weight: Array, group: Array) -> Scaled:
        scaled, flat = returns.standardize(advantage, weight, axis=0)
        return scaled, jnp.broadcast_to(flat[None], advantage.shape)

    def unit(self, advantage: Array, weight: Array, group: Array) -> Array:
        each = returns.deviation(advantage, weight, axis=0)
        return jnp.broadcast_to(each[None], advantage.shape)


@component
class PerGroup(Standardization):
    """Those of each group apart, such as the instruments of a market.

    Attributes:
        num_groups: Groups that environments report, 0 … num_groups − 1. Steps of none
            of them count for their environment.

    Raises:
        ValueError: At construction, without groups.
    """

    num_groups: Count = 1

    def __call__(self, advantage: Array, weight: Array, group: Array) -> Scaled:
        chex.assert_equal_shape([advantage, weight, group])
        group = returns.group_index(group, self.num_groups)
        alone = group >= self.num_groups

        def one(index):
            inside = jnp.where(group == index, weight, 0.0)
            return returns.standardize(advantage, inside)

        parts, flat = jax.lax.map(one, jnp.arange(self.num_groups))
        own, still = PerEnv()(advantage, jnp.where(alone, weight, 0.0), group)
        flat = jnp.where(alone, still, flat[jnp.where(alone, 0, group)])
        return parts.sum(axis=0) + own, flat

    def unit(self, advantage: Array, weight: Array, group: Array) -> Array:
        group = returns.group_index(group, self.num_groups)
        alone = group >= self.num_groups

        def one(index):
            inside = jnp.where(group == index, weight, 0.0)
            return returns.deviation(advantage, inside)

        each = jax.lax.map(one, jnp.arange(self.num_groups))
        own = PerEnv().unit(advantage, jnp.where(alone, weight, 0.0), group)
        return jnp.where(alone, own, each[jnp.where(alone, 0, group)])

"""Moments of gradients over time, which tell noise from signal."""

from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax.typing import ArrayLike

from ppo_jax.arrays import tree
from ppo_jax.types import Array, PyTree

Statistic = Callable[[Array], tuple[Array, Array]]
"""Function from a gradient leaf to its statistic, and the variance within a step.

The statistic is followed over time.
"""


class Moments(NamedTuple):
    """Bias-corrected moving moments of the statistic of each leaf."""

    weight: PyTree
    """A scalar per leaf: 1 − βᵗ after t finite gradients."""
    mean: PyTree
    variance: PyTree


def begin(params: PyTree, statistic: Statistic) -> Moments:
    """Returns the moments before the first gradient."""

    def followed(leaf):
        value, _ = jax.eval_shape(statistic, _seen(jnp.zeros(jnp.shape(leaf))))
        return jnp.zeros(value.shape, jnp.float32)

    return Moments(
        weight=jax.tree.map(lambda _: jnp.zeros((), jnp.float32), params),
        mean=jax.tree.map(followed, params),
        variance=jax.tree.map(followed, params),
    )


def observe(
    moments: Moments, gradients: PyTree, statistic: Statistic, beta: ArrayLike
) -> tuple[Moments, ArrayLike]:
    """Moves the moments of all leaves, except of leaves that are not finite.

    Args:
        moments: Moments of the gradients before.
        gradients: Gradients to follow.
        statistic: Function from a leaf to the statistic that is followed.
        beta: Decay β in (0, 1).

    Returns:
        The moments afterwards, and the number of leaves that were left out.
    """

    def observe(gradient, *before):
        weight, mean, variance = before
        value, spread = statistic(_seen(gradient))
        weight = beta * weight + (1 - beta)
        # (1 − β) / (1 − βᵗ) moves a bias-corrected mean, and by differences: a constant
        # has variance 0 exactly, where E[x²] − E[x]² would cancel.
        share = (1 - beta) / weight
        delta = value - mean
        mean = mean + share * delta
        variance = (1 - share) * (variance + share * delta**2) + share * spread
        finite = jnp.isfinite(jnp.mean(variance) + jnp.mean(mean**2))
        return finite, tree.where(finite, (weight, mean, variance), before)

    observed = jax.tree.map(observe, gradients, *moments)
    skipped = jax.tree.map(lambda _, leaf: 1 - leaf[0], gradients, observed)
    moved = (
        jax.tree.map(lambda _, leaf, i=i: leaf[1][i], gradients, observed)
        for i in range(len(moments))
    )
    return Moments(*moved), sum(jax.tree.leaves(skipped))


def normalized(moments: Moments, eps: ArrayLike) -> tuple[Array, Array]:
    """Returns R = V / (M² + eps · S) of the leaves `[L]`, and its denominator.

    S is V + M².
    """
    variance = _per_leaf(jax.tree.map(jnp.mean, moments.variance))
    square = _per_leaf(jax.tree.map(lambda mean: jnp.mean(mean**2), moments.mean))
    total = variance + square
    # Shares of S, so that tiny gradients do not underflow.
    unit = jnp.where(total > 0, total, 1.0)
    signal = square / unit + eps
    return variance / unit / signal, signal * total


def _seen(leaf: Array) -> Array:
    """Returns a leaf in float32; a leaf without numbers is seen as one 0."""
    return leaf.astype(jnp.float32) if leaf.size else jnp.zeros(1, jnp.float32)


def _per_leaf(scalars: PyTree) -> Array:
    leaves = jax.tree.leaves(scalars)
    return jnp.stack(leaves) if leaves else jnp.zeros(0, jnp.float32)

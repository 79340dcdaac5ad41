"""Quantiles that are clipped and learned, by hand and against scipy."""

import functools

import chex
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from criticism import LEVELS, LOC, SPREAD, clipped_loss, learned
from scipy import stats

from ppo_jax.critics import (
    LinearTail,
    MeanAndVariance,
    MeanOnly,
    PerQuantile,
    Quantile,
    ValueDist,
)


@pytest.mark.parametrize(
    ("clip", "want"),
    [
        (PerQuantile(), [-0.5, 0.5, 1.5]),
        (MeanOnly(), [-1.5, 0.5, 2.5]),
        (MeanAndVariance(1.0), [-0.5, 0.5, 1.5]),
        (MeanAndVariance(1.5), [-1.0, 0.5, 2.0]),
        (MeanAndVariance(2.0), [-1.5, 0.5, 2.5]),
    ],
)
def test_clipped_quantiles_by_hand(clip, want):
    """PROP-12.1, R-D13: the ways of clipping, of which one frees the variance."""
    critic = Quantile(3, clip=clip)
    new = ValueDist(jnp.array([[0.0, 2.0, 4.0]]), critic)
    old = ValueDist(jnp.array([[-1.0, 0.0, 1.0]]), critic)
    chex.assert_trees_all_close(
        new.clip(old, 0.5).outputs, np.array([want]), rtol=0, atol=1e-6
    )


@pytest.mark.parametrize(
    ("clip", "want"), [(PerQuantile(), 0.7778), (MeanOnly(), 0.5903)]
)
def test_clipped_quantile_losses_by_hand(clip, want):
    """PROP-12.1, R-E2: the target 3 is far outside the range and is not moved."""
    critic = Quantile(3, clip=clip)
    new = ValueDist(jnp.array([[0.0, 2.0, 4.0]]), critic)
    old = ValueDist(jnp.array([[-1.0, 0.0, 1.0]]), critic)
    chex.assert_trees_all_close(new.loss(jnp.array(3.0)), np.array([0.25]), rtol=1e-6)
    got = clipped_loss(new, old, jnp.array(3.0), 0.5)
    chex.assert_trees_all_close(got, np.array([want]), rtol=0, atol=5e-5)


def test_quantiles_at_the_bound_get_no_gradient():
    """PROP-12.9: where the clipped loss wins; the others keep theirs."""
    critic = Quantile(3, clip=PerQuantile())
    old = ValueDist(np.float32([[-1.0, 0.0, 1.0]]), critic)

    @jax.jit
    @functools.partial(jax.value_and_grad, has_aux=True)
    def losses(outputs):
        new, target = ValueDist(outputs, critic), jnp.array(3.0)
        return clipped_loss(new, old, target, 0.5)[0], new.loss(target)[0]

    (clipped, plain), gradient = losses(np.float32([[-0.8, 2.0, 4.0]]))
    assert clipped > plain
    assert gradient[0, 0] != 0
    chex.assert_trees_all_equal(gradient[0, 1:], 0.0)


def test_the_rule_of_a_tail_is_a_component():
    quantiles = jnp.arange(4.0)
    step, linear = (
        ValueDist(quantiles[None], Quantile(4, tail=tail))
        for tail in (Quantile().tail, LinearTail())
    )
    chex.assert_trees_all_close(step.cvar(0.5), np.array([0.5]), rtol=1e-6)
    tail = linear.cvar(0.375)  # Of −½ to 1.
    chex.assert_trees_all_close(tail, np.array([0.25]), rtol=1e-6)


def test_learned_quantiles_are_those_of_the_returns():
    """Of a different spread in every state; κ is small against all of them."""
    value = learned(Quantile(21, kappa=0.02))
    exact = LOC[:, None] + SPREAD[:, None] * stats.norm.ppf(LEVELS)
    error = np.abs(np.asarray(value.outputs)[:, 0] - exact) / SPREAD[:, None]
    assert error.max() < 0.15
    chex.assert_trees_all_close(value.mean()[:, 0], LOC, rtol=0, atol=0.15)

"""The penalty on what an attack does to the policy, by hand."""

import chex
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from minibatches import context, forward, minibatch, normal
from tabular import as_float64

from ppo_jax import Config, adversaries, terms
from ppo_jax.networks.distributions import Categorical
from ppo_jax.terms.term import Attacked

MASK = jnp.array([[True, False], [False, False], [True, False]])
WEIGHT = jnp.array([[1.0, 1.0], [0.5, 1.0], [2.0, 0.5]])
CLEAN, SHOWN = normal(0, 3), normal(1, 3)


def kl(shown=SHOWN):
    p, q = (
        np.exp(x) / np.exp(x).sum(axis=-1, keepdims=True)
        for x in map(as_float64, (CLEAN, shown))
    )
    return (p * np.log(p / q)).sum(axis=-1)


def said_by(term, clean=CLEAN, shown=SHOWN, mask=MASK):
    share = jnp.sum(WEIGHT * mask) / WEIGHT.sum()
    attacked = Attacked(Categorical(clean), Categorical(shown), mask, share, {})
    out = forward()._replace(attacked=attacked)
    return term(out, minibatch(weight=WEIGHT), context())


def test_the_penalty_is_the_mean_over_attacked_rows():
    """Whatever their share: 3 of 6 by weight here, so each counts twice."""
    loss, said = said_by(terms.RobustKL(coef=0.5))
    want = np.where(MASK, kl() * 2, 0.0)
    chex.assert_trees_all_close(said["sa_ppo/kl_divergence"], want, rtol=1e-4)
    chex.assert_trees_all_close(loss, 0.5 * want, rtol=1e-4)
    chex.assert_trees_all_equal(said["sa_ppo/robust_kl_penalty"], loss)
    total, weight = (np.float64(WEIGHT) * want).sum(), np.float64(WEIGHT)
    mean = (weight * kl())[MASK].sum() / weight[MASK].sum()
    assert total / weight.sum() == pytest.approx(mean, rel=1e-4)


def test_without_attacked_rows_there_is_no_penalty():
    """Not NaN, although there is nothing to take a mean of."""
    loss, _ = said_by(terms.RobustKL(coef=0.5), mask=jnp.zeros((3, 2), bool))
    chex.assert_trees_all_equal(loss, jnp.zeros((3, 2)))


def test_the_policy_at_the_truth_is_a_constant():
    def total(clean, shown):
        return said_by(terms.RobustKL(), clean, shown)[0].sum()

    slopes = jax.jit(jax.grad(total, argnums=(0, 1)))
    at_truth, at_shown = jax.device_get(slopes(CLEAN, SHOWN))
    chex.assert_trees_all_equal(at_truth, np.zeros_like(CLEAN))
    assert at_shown[MASK].any() and not at_shown[~MASK].any()


def test_it_needs_an_adversary_and_a_coefficient_that_is_not_negative():
    with pytest.raises(ValueError, match=r"RobustKL\.coef: expected a finite number"):
        terms.RobustKL(coef=-1.0)
    fields = {"terms": (terms.Surrogate(), terms.RobustKL()), "obs_clip": 5.0}
    with pytest.raises(ValueError, match=r"Config\.adversary: expected an adversary"):
        Config("CartPole-v1", **fields)
    Config("CartPole-v1", **fields, adversary=adversaries.Mixed())

"""Atoms that are clipped and learned, by hand and against scipy."""

import chex
import jax
import jax.numpy as jnp
import numpy as np
from criticism import LEVELS, LOC, SPREAD, learned
from scipy import stats

from ppo_jax import losses
from ppo_jax.critics import Categorical, MeanAndVariance, MeanOnly, Quantile, ValueDist


def test_clipped_atoms_by_hand():
    """PROP-12.8: a shift of +.25 in shares, whatever the number of rows."""
    probs = np.array([0.1, 0.2, 0.4, 0.2, 0.1])
    critic = Categorical(5, -1.0, 1.0, clip=MeanOnly())
    new, old = np.log(probs), np.array([-50.0, -50, -50, 0, -50])
    new, old = (np.float32(np.tile(x, (3, 1, 1))) for x in (new, old))
    targets = np.float32([-1.0, 0.5, 0.75])

    @jax.jit
    def said(new, old):
        new, old = ValueDist(new, critic), ValueDist(old, critic)
        moved = new.clip(old, 0.25)  # From 0 to the old mean ½ less ¼.
        got = losses.project(moved.outputs, critic.atoms)
        law = critic.law(new.outputs)
        return law.probs, got, moved.mean(), moved.loss(targets), moved.cvar(0.2)

    before, got, mean, loss, cvar = jax.device_get(said(new, old))
    chex.assert_trees_all_close(before[0, 0], probs, rtol=1e-5)
    want = np.array([0.05, 0.15, 0.3, 0.3, 0.2])
    chex.assert_trees_all_close(got, np.tile(want, (3, 1, 1)), rtol=0, atol=1e-5)
    chex.assert_trees_all_close(got.sum(axis=-1), 1.0, rtol=0, atol=1e-6)
    chex.assert_trees_all_close(mean, 0.225, rtol=0, atol=1e-5)
    want = -np.log([0.05, 0.3, np.sqrt(0.3 * 0.2)])
    chex.assert_trees_all_close(loss[:, 0], want, rtol=1e-4)
    chex.assert_trees_all_close(cvar, -0.5, rtol=0, atol=1e-5)


def test_narrowed_atoms_by_hand():
    """PROP-12.8: deviations ×½ about the clipped mean where σ may only double."""
    critic = Categorical(5, -1.0, 1.0, clip=MeanAndVariance(1.0))
    wide = np.log(np.float32([[0.5, 1e-9, 1e-9, 1e-9, 0.5]]))
    narrow = np.log(np.float32([[1e-9, 0.5, 1e-9, 0.5, 1e-9]]))

    @jax.jit
    def projected(wide, narrow):
        moved = ValueDist(wide, critic).clip(ValueDist(narrow, critic), 0.1)
        return losses.project(moved.outputs, critic.atoms)

    got = projected(wide, narrow)
    chex.assert_trees_all_close(got, np.array([[0, 0.5, 0, 0.5, 0]]), rtol=0, atol=1e-4)


def test_learned_probabilities_are_those_of_the_returns():
    """The distribution function, and its inverse at the same 21 levels."""
    critic = Categorical(81, -10.0, 10.0)
    value = learned(critic)
    atoms = np.linspace(-10, 10, 81)
    probs = np.asarray(critic.law(value.outputs).probs, np.float64)[:, 0]
    edges = atoms + 0.125
    for loc, spread, law in zip(LOC, SPREAD, probs, strict=True):
        exact = stats.norm.cdf(edges, loc, spread)
        assert np.abs(np.cumsum(law) - exact).max() < 0.03
        quantiles = np.interp(LEVELS, np.cumsum(law), edges)
        error = np.abs(quantiles - loc - spread * stats.norm.ppf(LEVELS))
        assert error.max() < 0.15 * spread


def test_targets_outside_of_the_support_are_counted():
    """By the kind of critic that has one."""
    target = jnp.array([-1.1, -1.0, 0.0, 2.0, 2.1, 5.0])
    said = Categorical(3, -1.0, 2.0).target_metrics(target)
    assert said["train/value_target_below_frac"].tolist() == [1, 0, 0, 0, 0, 0]
    assert said["train/value_target_above_frac"].tolist() == [0, 0, 0, 0, 1, 1]
    assert Quantile(3).target_metrics(target) == {}

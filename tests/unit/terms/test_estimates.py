"""The CVaR that a constraint is held against, by hand."""

import chex
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from minibatches import context, forward, minibatch, targets

from ppo_jax.critics import Quantile
from ppo_jax.normalization.return_scale import identity
from ppo_jax.terms.estimates import Empirical, Estimate, Predicted

TAIL = {"train/cvar_empirical": jnp.float32(-3.0), "train/cvar_tail_size": 2}
ROLLOUT = targets(np.zeros((4, 2)), unit=2.0)


@pytest.mark.parametrize(
    ("tail", "unit", "gap"),
    [
        ({}, 2.0, 1.0),
        ({"train/cvar_empirical": jnp.float32(0.0)}, 2.0, -0.5),
        ({"train/cvar_tail_size": 0}, 2.0, 0.0),
        ({"train/cvar_empirical": jnp.nan, "train/cvar_tail_size": 0}, 2.0, 0.0),
        ({}, np.inf, 0.0),
    ],
)
def test_the_gap_of_the_rollout_is_in_units_of_advantages(tail, unit, gap):
    """(limit − CVaR) / unit; without a tail there is none."""
    rollout = targets(np.zeros((4, 2)), unit=unit)
    prepared, said = Empirical().prepare(TAIL | tail, -1.0, rollout)
    assert prepared == () and said["train/cvar_gap"] == gap
    want = (TAIL | tail)["train/cvar_empirical"]
    chex.assert_trees_all_equal(said["train/cvar_estimate"], want)


def test_what_was_seen_has_no_loss_of_its_own():
    loss, said = Empirical()(forward(), context(), 0.1, -1.0)
    chex.assert_trees_all_equal(loss, jnp.zeros((3, 2)))
    assert said == {}


SCALE = identity().replace(mean=jnp.float32(1.0), std=jnp.float32(3.0))


@pytest.mark.parametrize("through", [0.0, 0.5])
def test_a_prediction_is_that_of_the_worse_critic_in_units_of_rewards(through):
    """The mean of its lower half of four quantiles; what misses the limit is paid."""
    out = forward(Quantile(4))
    estimate = Predicted(through=through)
    prepared, said = estimate.prepare(TAIL, 0.0, ROLLOUT)
    chex.assert_trees_all_equal(prepared, jnp.full((4, 2), 2.0))
    assert said == {}
    given = context(prepared=prepared[:3], scale=SCALE)
    loss, said = estimate(out, given, 0.5, -2.0)
    quantiles = np.sort(np.float64(out.value.outputs), axis=-1)
    worse = np.argmin(quantiles.mean(axis=-1), axis=-1)
    lower = np.take_along_axis(quantiles, worse[..., None, None], axis=2)[..., 0, :2]
    cvar = 3.0 * lower.mean(axis=-1) + 1.0
    gap = (-2.0 - cvar) / 2.0
    assert (gap > 0).any() and (gap < 0).any()
    chex.assert_trees_all_close(said["train/cvar_estimate"], cvar, rtol=1e-5, atol=1e-6)
    chex.assert_trees_all_close(said["train/cvar_gap"], gap, rtol=1e-5, atol=1e-6)
    want = through * np.maximum(gap, 0)
    chex.assert_trees_all_close(loss, want, rtol=1e-5, atol=1e-6)


def test_only_the_prediction_reads_the_critic_and_may_teach_it():
    assert Predicted.reads_critic and not Empirical.reads_critic

    def loss(outputs, through):
        out = forward(Quantile(4))
        out = out._replace(value=out.value.replace(outputs=outputs))
        given = context(prepared=jnp.ones((3, 2)))
        return Predicted(through=through)(out, given, 0.5, 9.0)[0].sum()

    outputs = forward(Quantile(4)).value.outputs
    slope = jax.jit(jax.grad(loss))
    assert not np.any(slope(outputs, 0.0))
    assert np.any(slope(outputs, 0.5), axis=-1).sum() == 6


def test_an_estimate_has_to_say_what_it_does():
    with pytest.raises(ValueError, match=r"Predicted\.through: expected a finite"):
        Predicted(through=-1.0)
    with pytest.raises(NotImplementedError, match=r"Estimate\.prepare: missing"):
        Estimate().prepare(TAIL, 0.0, ROLLOUT)
    with pytest.raises(NotImplementedError, match=r"Estimate\.__call__: missing"):
        Estimate()(forward(), minibatch(), 0.1, 0.0)

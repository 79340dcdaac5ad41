"""Ways of clipping, whatever the kind of critic."""

import dataclasses
import functools

import chex
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from criticism import clipped_loss, name, predictions, targets

from ppo_jax.critics import (
    Categorical,
    MeanAndVariance,
    MeanOnly,
    PerQuantile,
    Quantile,
    Scalar,
    ValueDist,
)

CLIPPING = [
    Scalar(clip=MeanOnly()),
    Quantile(5, clip=PerQuantile()),
    Quantile(5, clip=MeanOnly()),
    Quantile(5, clip=MeanAndVariance()),
    Categorical(7, -4.0, 4.0, clip=MeanOnly()),
    Categorical(7, -4.0, 4.0, clip=MeanAndVariance()),
]
clipping = pytest.mark.parametrize("critic", CLIPPING, ids=name)


@clipping
def test_shapes_lead_with_the_batch(critic, variant):
    """Every kind alike: clipped or not, with any leading axes."""

    def summary(outputs, old, target):
        value, old = ValueDist(outputs, critic), ValueDist(old, critic)
        moved = value.clip(old, 0.3)
        leads = {leaf.shape[:-1] for leaf in jax.tree.leaves(moved.outputs)}
        assert leads == {(3, 4, 2)}
        return [
            f(x)
            for x in (value, moved)
            for f in (
                lambda x: x.mean(),
                lambda x: x.cvar(0.2),
                lambda x: x.loss(target),
            )
        ]

    got = variant(summary)(
        predictions(critic, 0).outputs, predictions(critic, 1).outputs, targets()
    )
    for x in got:
        chex.assert_shape(x, (3, 4, 2))
        chex.assert_type(x, jnp.float32)
        chex.assert_tree_all_finite(x)


@clipping
def test_clips_says_whether_old_predictions_are_needed(critic):
    """Absent clipping is the identity."""
    value = predictions(critic, 0)
    assert value.clips
    off = dataclasses.replace(critic, clip=None)
    value = dataclasses.replace(value, critic=off)
    assert not value.clips
    assert value.clip(predictions(off, 1), 0.1) is value


@clipping
def test_an_unmoved_prediction_and_a_wide_range_change_no_loss(critic):
    """PROP-12.2, PROP-12.8."""
    value, old, target = predictions(critic, 0), predictions(critic, 1), targets()
    loss = value.loss(target)
    chex.assert_trees_all_close(
        clipped_loss(value, value, target, 0.1), loss, rtol=1e-4, atol=1e-5
    )
    if not isinstance(critic.clip, MeanAndVariance):
        chex.assert_trees_all_close(
            value.clip(old, 1e6).loss(target), loss, rtol=1e-4, atol=1e-5
        )


@jax.jit
def means(old, value):
    return old.mean(), value.mean(), value.clip(old, 0.3).mean()


@clipping
def test_the_mean_stays_within_range(critic):
    """PROP-12.3, PROP-12.8: but for what the ends of a support hold back."""
    value, old = predictions(critic, 2), predictions(critic, 3)
    if isinstance(critic, Categorical):  # Laws that a move keeps within the support.
        places = np.linspace(-1.0, 1.0, 7)
        bumps = [np.float32(-8.0 * (places - x) ** 2) for x in (-0.25, 0.35)]
        value, old = (ValueDist(x[None], critic) for x in bumps)
    before, after, clipped = jax.device_get(means(old, value))
    assert np.abs(after - before).max() > 0.5
    moved = np.abs(clipped - before)
    assert (moved < 0.3 + 2e-2).all() and moved.max() > 0.27


@jax.jit
@functools.partial(jax.value_and_grad, argnums=(0, 1))
def first_loss(new, old, critic):
    new, old = ValueDist(new, critic), ValueDist(old, critic)
    return clipped_loss(new, old, targets(), 0.2)[..., 0].sum()


@clipping
def test_critics_are_clipped_against_their_own_past(critic):
    """PROP-12.6, PROP-11.2, X6: the other one's old and new ones do not matter."""
    value, old = predictions(critic, 4).outputs, predictions(critic, 5).outputs
    loss, gradients = jax.device_get(first_loss(value, old, critic))
    for gradient in gradients:
        assert np.abs(gradient[..., 0, :]).max() > 0
        chex.assert_trees_all_equal(gradient[..., 1, :], 0.0)
    other = np.array(old)
    other[..., 1, :] = 100.0
    assert first_loss(value, other, critic)[0] == loss


@pytest.mark.parametrize("critic", CLIPPING[:4], ids=name)
def test_clipping_in_raw_or_in_scaled_units_is_the_same(critic):
    """PROP-12.7: ε σ there is ε here."""
    value, old, std, mean = predictions(critic, 6), predictions(critic, 7), 40.0, -300.0
    raw = ValueDist(value.outputs * std + mean, critic)
    raw_old = ValueDist(old.outputs * std + mean, critic)
    chex.assert_trees_all_close(
        (raw.clip(raw_old, 0.3 * std).outputs - mean) / std,
        value.clip(old, 0.3).outputs,
        rtol=0,
        atol=1e-4,
    )


@pytest.mark.parametrize("critic", CLIPPING, ids=name)
def test_targets_outside_the_range_are_told_apart(critic):
    """R-D4, R-D16: in both losses; only a support has ends."""
    value, old = predictions(critic, 8), predictions(critic, 8)
    moved = value.clip(old, 0.01)
    near, far = jnp.full((3, 4), 2.5), jnp.full((3, 4), 3.9)
    for prediction in (value, moved):
        difference = prediction.loss(near) - prediction.loss(far)
        assert jnp.abs(difference).min() > 1e-3


def test_numbers_of_a_critic_may_differ_over_a_population():
    """The support and the growth of the deviation, in one program."""
    members = [
        Categorical(7, -4.0, top, clip=MeanAndVariance(factor))
        for top, factor in ((4.0, 1.0), (6.0, 3.0))
    ]
    stacked = jax.tree.map(lambda *x: np.stack(x), *members)
    new, old = (predictions(members[0], seed).outputs for seed in (13, 14))

    def loss(critic):
        value = ValueDist(new, critic)
        return clipped_loss(value, ValueDist(old, critic), targets(), 0.1)

    both, alone = jax.device_get(jax.jit(jax.vmap(loss))(stacked)), jax.jit(loss)
    for got, critic in zip(both, members, strict=True):
        chex.assert_trees_all_close(got, alone(critic), rtol=1e-4, atol=1e-4)

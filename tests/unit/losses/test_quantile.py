"""Quantile regression against hand-worked numbers and order statistics."""

import chex
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from ppo_jax.losses import clip_around, quantile_huber_loss, quantile_midpoints

STAIRS = jnp.arange(4.0)
loss_of = jax.jit(quantile_huber_loss)


def oracle(quantiles, target, kappa):
    """One example in plain Python."""
    n, terms = len(quantiles), []
    for i, q in enumerate(quantiles):
        u = target - q
        huber = u * u / 2 if abs(u) <= kappa else kappa * (abs(u) - kappa / 2)
        tau = (i + 0.5) / n
        terms.append((1 - tau if u < 0 else tau) * huber)
    return terms


def terms(quantiles, target, kappa=1.0):
    """Each quantile's own loss: that of N critics which differ in one quantile.

    Replacing every other prediction by the target leaves N times its mean.
    """
    n = quantiles.shape[0]
    alone = np.where(np.eye(n, dtype=bool), np.tile(quantiles, (n, 1)), target)
    return n * np.asarray(loss_of(alone, np.full(n, target), kappa))


def test_midpoints():
    chex.assert_trees_all_close(
        quantile_midpoints(5), np.array([0.1, 0.3, 0.5, 0.7, 0.9]), rtol=1e-7
    )
    chex.assert_type(quantile_midpoints(5), jnp.float32)
    with pytest.raises(ValueError, match="num_quantiles"):
        quantile_midpoints(0)


@pytest.mark.parametrize(
    ("target", "kappa", "each", "mean"),
    [
        (1.5, 1.0, [0.125, 0.046875, 0.046875, 0.125], 0.0859375),
        (5.0, 1.0, [0.5625, 1.3125, 1.5625, 1.3125], 1.1875),
        (-2.0, 1.0, [1.3125, 1.5625, 1.3125, 0.5625], 1.1875),
        (5.0, 2.0, [1.0, 2.25, 2.5, 1.75], 1.875),
    ],
)
def test_loss_by_hand(target, kappa, each, mean, variant):
    """PROP-9.1, R-D15: predictions 0, 1, 2, 3; the kernel is not divided by κ."""
    got = variant(quantile_huber_loss)(STAIRS, jnp.array(target), kappa)
    chex.assert_trees_all_close(got, mean, rtol=1e-6)
    chex.assert_trees_all_close(terms(STAIRS, target, kappa), np.array(each), rtol=1e-6)


def test_the_asymmetry_is_the_right_way_round():
    """PROP-9.2, R-D15: an underestimate costs τ, more for upper quantiles."""
    low, high = terms(np.zeros(2), 0.5), terms(np.zeros(2), -0.5)
    chex.assert_trees_all_close(low, np.array([0.03125, 0.09375]), rtol=1e-7)
    chex.assert_trees_all_close(high, np.array([0.09375, 0.03125]), rtol=1e-7)


def test_zero_only_for_a_perfect_prediction():
    """PROP-9.3."""
    perfect, target = np.full((1, 4), 2.0), np.array([2.0])
    assert loss_of(perfect, target) == 0
    for other in np.eye(4):
        for miss in (1e-3, -1e-3):
            assert loss_of(perfect + miss * other, target) > 0


@pytest.mark.parametrize("kappa", [0.5, 1.0, 3.0])
def test_gradient_by_formula(kappa):
    """PROP-9.4: −|τᵢ − 1{u < 0}| · clip(u, −κ, κ) / N."""
    rng = np.random.default_rng(0)
    q, y = rng.normal(size=(6, 5)) * 3, rng.normal(size=6)
    u = y[:, None] - q
    weight = np.abs((np.arange(5) + 0.5) / 5 - (u < 0))
    want = -weight * np.clip(u, -kappa, kappa) / 5
    total = jax.grad(lambda q, kappa: quantile_huber_loss(q, y, kappa).sum())
    got = jax.jit(total)(q, kappa)
    chex.assert_trees_all_close(got, want, rtol=1e-4, atol=1e-6)


def test_the_target_gets_no_gradient():
    gradient = jax.grad(lambda y: quantile_huber_loss(STAIRS, y))(jnp.array(1.3))
    assert gradient == 0


def test_minimiser_is_the_sample_quantile():
    """PROP-9.5, R-D15: κ → 0; the loss falls towards np.quantile from both sides."""
    samples = np.sort(np.random.default_rng(0).normal(size=201))
    levels = np.array([0.125, 0.375, 0.625, 0.875])
    quantiles = np.quantile(samples, levels)

    def mean_loss(q):
        rows = jnp.tile(q, (samples.size, 1))
        return quantile_huber_loss(rows, samples, kappa=1e-4).mean()

    slopes = jax.jit(jax.grad(mean_loss))
    assert (slopes(quantiles - 0.1) < 0).all()
    assert (slopes(quantiles + 0.1) > 0).all()


def test_reduction_is_left_to_the_caller():
    """PROP-9.6, PROP-9.8: per example, each from its own row; any leading axes."""
    rng = np.random.default_rng(1)
    q, y = rng.normal(size=(2, 3, 4)) * 2, rng.normal(size=(2, 3))
    got = np.asarray(loss_of(q, y, 0.7))
    want = [[np.mean(oracle(q[i, j], y[i, j], 0.7)) for j in range(3)] for i in (0, 1)]
    chex.assert_shape(got, (2, 3))
    chex.assert_trees_all_close(got, np.array(want), rtol=1e-5)
    chex.assert_trees_all_close(got.sum(), 6 * np.mean(want), rtol=1e-5)


@pytest.mark.parametrize("side", [-1.0, 1.0])
def test_kernel_is_continuous_and_smooth_at_kappa(side):
    """PROP-9.7: value κ²/2 and slope κ from either side of |u| = κ."""
    kappa = 0.75
    loss = jax.jit(jax.value_and_grad(quantile_huber_loss))
    for miss in (-1e-4, 0.0, 1e-4):  # One quantile, τ = ½.
        value, slope = loss(np.array([side * (kappa + miss)]), 0.0, kappa)
        chex.assert_trees_all_close(value, kappa**2 / 4, rtol=0, atol=1e-4)
        chex.assert_trees_all_close(
            slope, np.array([side * kappa / 2]), rtol=0, atol=1e-4
        )


def test_examples_do_not_see_each_other():
    """PROP-9.8: the gradient of example 0 is zero in every other row."""
    q, y = np.random.default_rng(0).normal(size=(3, 4)), np.array([0.1, 2, 3])
    slopes = jax.jit(jax.grad(lambda q: quantile_huber_loss(q, y)[0]))
    gradient = np.asarray(slopes(q))
    assert (gradient[0] != 0).all()
    chex.assert_trees_all_equal(gradient[1:], 0.0)


def test_target_column_equals_target_vector():
    """PROP-9.8: `[B, 1]` and `[B]`."""
    q, y = np.ones((3, 4)), np.arange(3.0)
    chex.assert_trees_all_equal(loss_of(q, y[:, None]), loss_of(q, y))


@pytest.mark.parametrize("shape", [(1, 3), (3, 3), (3, 4), (2,), (), (1, 3, 1)])
def test_targets_of_another_shape_are_rejected(shape):
    """PROP-9.8: none of these may broadcast to `[B, B, N]`."""
    with pytest.raises(ValueError, match=r"target: .* one per row of `quantiles`, got"):
        quantile_huber_loss(jnp.zeros((3, 4)), jnp.zeros(shape))


@pytest.mark.parametrize(("target", "want"), [(0.6, 0.09), (3.0, 1.25), (-3.0, 1.25)])
def test_one_quantile_is_half_a_huber_loss(target, want):
    """PROP-9.9: τ = ½; ½ · ½ · .36 and ½ · (3 − ½)."""
    got = loss_of(np.zeros(1), target)
    chex.assert_trees_all_close(got, want, rtol=1e-6)


def test_predictions_are_not_sorted():
    """A crossing pair costs what its own levels say."""
    crossed = np.array([3.0, 0.0])
    got = loss_of(crossed, 1.0)
    chex.assert_trees_all_close(got, np.mean(oracle([3, 0], 1.0, 1.0)), rtol=1e-6)
    assert got > loss_of(crossed[::-1], 1.0)


def test_kappa_may_be_traced():
    """A population tunes κ in one program."""
    loss = jax.jit(jax.vmap(quantile_huber_loss, (None, None, 0)))
    got = loss(STAIRS, jnp.array(5.0), jnp.array([1.0, 2.0]))
    chex.assert_trees_all_close(got, np.array([1.1875, 1.875]), rtol=1e-6)


@pytest.mark.parametrize("kappa", [0, 0.0, -1.0, jnp.nan, jnp.inf, jnp.zeros(())])
def test_kappa_must_be_positive(kappa):
    with pytest.raises(ValueError, match="kappa"):
        quantile_huber_loss(STAIRS, jnp.array(1.0), kappa)


def test_huge_errors_neither_overflow_nor_spoil_the_gradient():
    q = np.float32([0.0, 1e30])
    value, slope = jax.jit(jax.value_and_grad(quantile_huber_loss))(q, 0.0)
    chex.assert_tree_all_finite(value)
    chex.assert_trees_all_close(slope, np.array([0.0, 0.125]), rtol=1e-7)


def test_low_precision_predictions_give_a_float32_loss():
    got = quantile_huber_loss(STAIRS.astype(jnp.bfloat16), jnp.array(1.5))
    chex.assert_type(got, jnp.float32)
    chex.assert_trees_all_close(got, 0.0859375, rtol=1e-6)


def test_clip_each_by_hand(variant):
    """PROP-12.1: per quantile, and the loss of the clipped ones for target 3."""
    old, new = map(jnp.asarray, np.float32([[-1, 0, 1], [0, 2, 4]]))
    clipped = variant(clip_around)(new, old, 0.5)
    chex.assert_trees_all_equal(clipped, np.array([-0.5, 0.5, 1.5]))
    chex.assert_trees_all_close(loss_of(new, 3.0), 0.25, rtol=1e-6)
    chex.assert_trees_all_close(loss_of(clipped, 3.0), 0.7778, rtol=0, atol=5e-5)


def test_clip_each_bounds_every_quantile_and_the_mean():
    """PROP-12.3."""
    rng = np.random.default_rng(0)
    new, old = np.float32(rng.normal(size=(2, 50, 8)) * 3)
    moved = np.asarray(jax.jit(clip_around)(new, old, 0.25)) - old
    assert np.abs(moved).max() <= 0.25 + 1e-6
    assert np.abs(moved.mean(axis=-1)).max() <= 0.25 + 1e-6
    with pytest.raises(ValueError, match=r"old: .* that of value"):
        clip_around(new, old[:1], 0.25)


def test_a_threshold_is_one_number():
    with pytest.raises(ValueError, match=r"kappa: expected a number, got float32"):
        quantile_huber_loss(jnp.zeros((3, 3)), jnp.zeros(3), jnp.ones(3))

"""Policy losses against hand-worked numbers and the published gradient rules."""

import chex
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from ppo_jax.losses import (
    LOG_RATIO_LIMIT,
    advantage_weights,
    approx_kl,
    approx_kl_k1,
    clipped_surrogate_loss,
)

EPS = 0.2
surrogate, k1_of, k3_of = map(
    jax.jit, (clipped_surrogate_loss, approx_kl_k1, approx_kl)
)


@jax.jit
def gradient(log_ratio, advantage):
    """Per-example derivative with respect to the log-ratio."""
    total = jax.grad(lambda x: clipped_surrogate_loss(x, advantage, EPS).sum())
    return total(log_ratio)


def test_surrogate_by_hand(variant):
    """PROP-5.1: surrogate (1.2, −.8, 1, −3), loss .4."""
    advantage = jnp.array([1.0, -1.0, 2.0, -2.0])
    log_ratio = jnp.log(jnp.array([1.5, 0.5, 0.5, 1.5]))
    loss = variant(clipped_surrogate_loss)(log_ratio, advantage, EPS)
    chex.assert_trees_all_close(-loss, np.array([1.2, -0.8, 1.0, -3.0]), rtol=1e-6)
    chex.assert_trees_all_close(loss.mean(), 0.4, rtol=1e-6)


def test_surrogate_against_cases():
    """PROP-5.1: the pessimistic choice, case by case, over a grid."""
    ratio, advantage = np.meshgrid(np.linspace(0.3, 2.0, 18), [-2.0, -0.5, 0.0, 1.0])
    want = np.empty_like(ratio)
    for index in np.ndindex(ratio.shape):
        r, a = ratio[index], advantage[index]
        usable = min(r, 1 + EPS) if a > 0 else max(r, 1 - EPS)
        want[index] = -a * usable
    got = surrogate(np.log(ratio), advantage, EPS)
    chex.assert_trees_all_close(got, want, rtol=1e-5, atol=1e-6)


def test_gradient_vanishes_exactly_where_the_ratio_went_too_far():
    """PROP-5.2: zero iff (A > 0, r > 1 + ε) or (A < 0, r < 1 − ε); else −A r."""
    ratio, advantage = np.meshgrid(np.linspace(0.31, 2.01, 18), [-2.0, -0.5, 1.0])
    got = np.asarray(gradient(np.log(ratio), advantage))
    too_far = ((advantage > 0) & (ratio > 1 + EPS)) | (
        (advantage < 0) & (ratio < 1 - EPS)
    )
    assert 0 < too_far.sum() < too_far.size
    chex.assert_trees_all_equal(got == 0, too_far)
    chex.assert_trees_all_close(
        got, np.where(too_far, 0.0, -advantage * ratio), rtol=1e-5
    )


def test_at_the_old_policy_the_gradient_is_the_policy_gradient():
    """PROP-5.3: x = 0 gives loss −A and gradient −A."""
    advantage, log_ratio = np.float32([1.5, -0.5, 0.0, 3.0]), np.zeros(4)
    loss = surrogate(log_ratio, advantage, EPS)
    chex.assert_trees_all_equal(loss, -advantage)
    chex.assert_trees_all_equal(gradient(log_ratio, advantage), -advantage)


def test_extreme_log_ratios_stay_finite():
    """PROP-5.4: exp(20) = 4.85165e8 bounds the loss; only a NaN stays visible."""
    log_ratio, ones = np.array([1e4, -1e4, np.inf, -np.inf]), np.ones(4)
    loss = surrogate(log_ratio, -ones, EPS)
    chex.assert_trees_all_close(
        loss, np.array([4.85165e8, 0.8, 4.85165e8, 0.8]), rtol=1e-5
    )
    chex.assert_trees_all_equal(gradient(log_ratio, -ones), 0.0)
    chex.assert_trees_all_equal(gradient(log_ratio, ones), 0.0)
    assert np.isnan(surrogate(np.full(4, np.nan), ones, EPS)).all()


def test_the_clamp_begins_at_twenty():
    """PROP-5.4, R-E6: below 20 the corrective gradient of A < 0 is whole."""
    assert LOG_RATIO_LIMIT == 20.0
    log_ratio = np.array([19.9, 20.1, -19.9, -20.1])
    got = gradient(log_ratio, np.array([-1.0, -1.0, 1.0, 1.0]))
    want = [np.exp(19.9), 0.0, -np.exp(-19.9), 0.0]
    chex.assert_trees_all_close(got, np.array(want), rtol=1e-5)


def test_clip_range_may_differ_per_member():
    """A population maps over the clip range in one program."""
    eps = np.array([0.1, 0.3])
    loss = jax.vmap(clipped_surrogate_loss, (None, None, 0))
    got = jax.jit(loss)(np.log([1.5]), np.ones(1), eps)
    chex.assert_trees_all_close(got, np.array([[-1.1], [-1.3]]), rtol=1e-6)


def test_any_leading_axes_in_float32():
    log_ratio, advantage = jnp.zeros((2, 3), jnp.bfloat16), jnp.ones((2, 3))
    for result in (
        jax.eval_shape(clipped_surrogate_loss, log_ratio, advantage, EPS),
        jax.eval_shape(approx_kl, log_ratio),
        jax.eval_shape(approx_kl_k1, log_ratio),
    ):
        chex.assert_shape(result, (2, 3))
        chex.assert_type(result, jnp.float32)
    chex.assert_shape(jax.eval_shape(clipped_surrogate_loss, 0.0, 1.0, EPS), ())


def test_shapes_must_agree():
    with pytest.raises(ValueError, match=r"advantage: .* that of log_ratio, got"):
        clipped_surrogate_loss(jnp.zeros((4, 1)), jnp.zeros(4), EPS)


def test_kl_estimators_are_unbiased():
    """PROP-7.1, R-E5: E_p[k1] = E_p[k3] = KL(p ‖ q) = .0226012, p the old policy."""
    p, q = np.array([0.6, 0.3, 0.1]), np.array([0.5, 0.35, 0.15])
    log_ratio = np.log(q / p)
    for estimate in (k3_of, k1_of):
        mean = (p * np.asarray(estimate(log_ratio), np.float64)).sum()
        chex.assert_trees_all_close(mean, 0.0226012, rtol=0, atol=2e-7)


def test_kl_estimators_by_hand(variant):
    """PROP-7.2, R-D12: k1 = .0125, k3 = .00629319."""
    log_ratio = jnp.array([0.1, -0.2, 0.05, 0.0])
    k1, k3 = variant(approx_kl_k1)(log_ratio), variant(approx_kl)(log_ratio)
    chex.assert_trees_all_close(k1.mean(), 0.0125, rtol=1e-5)
    chex.assert_trees_all_close(k3.mean(), 0.00629319, rtol=1e-5)


def test_k3_is_never_negative():
    """PROP-7.3: also where exp(x) − 1 − x rounds below zero."""
    size = np.logspace(-12, 1.5, 2_000)
    assert (k3_of(np.concatenate([-size, size])) >= 0).all()


def test_k3_keeps_its_digits_for_small_steps():
    """PROP-7.3: against float64; one step's KL is often below 1e-5."""
    x = np.array([1e-3, -1e-3, 1e-2, -1e-2, 1.0, -5.0], np.float32).astype(np.float64)
    chex.assert_trees_all_close(k3_of(x), np.expm1(x) - x, rtol=1e-3, atol=0)


def test_kl_estimators_clamp():
    """PROP-5.4: no estimate overflows; a NaN stays visible."""
    log_ratio = np.array([np.inf, -np.inf, 1e4, -1e4])
    k1, k3 = k1_of(log_ratio), k3_of(log_ratio)
    chex.assert_trees_all_equal(k1, np.array([-20.0, 20.0, -20.0, 20.0]))
    chex.assert_trees_all_close(
        k3, np.array([4.85165e8, 19.0, 4.85165e8, 19.0]), rtol=1e-5
    )
    assert np.isnan(k3_of(np.full(4, np.nan))).all()


def test_k1_and_k3_have_the_right_gradients():
    """R-D12: d k1 = −1 and d k3 = r − 1, which is 0 at the old policy."""
    log_ratio = np.array([0.0, 0.5, -0.5])
    k1 = jax.jit(jax.grad(lambda x: approx_kl_k1(x).sum()))(log_ratio)
    k3 = jax.jit(jax.grad(lambda x: approx_kl(x).sum()))(log_ratio)
    chex.assert_trees_all_equal(k1, -1.0)
    chex.assert_trees_all_close(k3, np.exp([0.0, 0.5, -0.5]) - 1, rtol=1e-5)


def test_advantage_weights_by_hand(variant):
    """PROP-8.1, R-E4: β = 5; ln 100 · 5 = 23.0259 is where the weight ends."""
    advantage = jnp.array([0.0, 1.0, 2.0, 3.0, -3.0, 5.0, 23.0259, 24.0, 1e30])
    want = [1, 1.2214, 1.4918, 1.8221, 0.5488, 2.7183, 100, 100, 100]
    weight = variant(advantage_weights)
    chex.assert_trees_all_close(weight(advantage, 5.0), np.array(want), rtol=1e-4)
    ends = weight(jnp.array([jnp.inf, -jnp.inf]), 5.0)
    chex.assert_trees_all_equal(ends, np.array([100.0, 0.0]))
    with pytest.raises(ValueError, match="advantage"):
        advantage_weights(jnp.array([0.0, jnp.nan]), 5.0)
    assert jnp.isnan(jax.jit(advantage_weights)(jnp.array([jnp.nan]), 5.0)).all()


@pytest.mark.parametrize("max_weight", [100.0, 20.0, 0.5])
def test_advantage_weights_are_bounded_and_monotone(max_weight):
    """PROP-8.2, R-E4."""
    advantage, weigh = np.linspace(-1e3, 1e3, 4_001), jax.jit(advantage_weights)
    for temperature in (0.1, 1.0, 5.0):
        weight = np.asarray(weigh(advantage, temperature, max_weight))
        assert weight.max() == np.float32(max_weight)
        assert weight.min() >= 0
        assert (np.diff(weight) >= 0).all()


def test_no_gradient_through_an_advantage_weight():
    """PROP-8.3."""
    total = jax.grad(
        lambda a, b, w: advantage_weights(a, b, w).sum(), argnums=(0, 1, 2)
    )
    for part in jax.jit(total)(np.array([0.0, 1.0, 99.0]), 5.0, 100.0):
        chex.assert_trees_all_equal(part, 0.0)


@pytest.mark.parametrize(("beta", "most"), [(0.0, 1.0), (-1.0, 1.0), (1.0, 0.0)])
def test_advantage_weights_need_positive_numbers(beta, most):
    """PROP-8.1: a known temperature and bound are checked."""
    with pytest.raises(ValueError, match="a number > 0"):
        advantage_weights(jnp.zeros(2), beta, most)


def test_temperature_may_differ_per_member():
    """PROP-8.1: a population maps over β and the bound in one program."""
    weights = jax.jit(jax.vmap(advantage_weights, (None, 0, 0)))
    got = weights(jnp.array([5.0]), jnp.array([5.0, 1.0]), jnp.array([100.0, 3.0]))
    chex.assert_trees_all_close(got, np.array([[2.7183], [3.0]]), rtol=1e-4)


@pytest.mark.parametrize("bounds", [(jnp.ones(3),), (0.2, jnp.full(3, 2.0))])
def test_bounds_are_one_number_each(bounds):
    with pytest.raises(
        ValueError, match=r"(clip_eps|dual_clip): expected a number, got"
    ):
        clipped_surrogate_loss(jnp.zeros(3), jnp.zeros(3), *bounds)

"""Actions in intervals against textbook densities in float64."""

import math

import chex
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import special, stats

from ppo_jax.networks.distributions import DiagGaussian, SigmoidGaussian, TanhGaussian

SQUASHED = [TanhGaussian, SigmoidGaussian]
BOUNDS = [(-1.0, 1.0), (0.0, 1.0), (-0.1, 0.2), (5.0, 25.0)]


def squash(cls, raw):
    """The position in the interval that a raw action gets, float64."""
    return (np.tanh(raw) + 1) / 2 if cls is TanhGaussian else special.expit(raw)


def unsquash(cls, fraction):
    """The raw action at a position in the interval."""
    if cls is TanhGaussian:
        return np.arctanh(2 * fraction - 1)
    return special.logit(fraction)


def textbook_log_density(cls, fraction, loc, scale, width):
    """Log-density of a squashed normal, from the derivative of the inverse map."""
    if cls is TanhGaussian:
        inverse_slope = 2 / (1 - (2 * fraction - 1) ** 2)
    else:
        inverse_slope = 1 / (fraction * (1 - fraction))
    normal = stats.norm.logpdf(unsquash(cls, fraction), loc, scale)
    return normal + np.log(inverse_slope / width)


def one(cls, loc, scale, low, high):
    """A squashed distribution with one component."""
    return cls(jnp.array([loc]), jnp.array([scale]), low=low, high=high)


def test_gaussian_against_scipy():
    rng = np.random.default_rng(0)
    loc, raw = rng.normal(size=(2, 5, 3))
    scale = rng.uniform(0.1, 3.0, (5, 3))
    policy = DiagGaussian(jnp.asarray(loc), jnp.asarray(scale))
    normal = stats.norm(loc, scale)
    log_p = normal.logpdf(raw).sum(axis=-1)
    chex.assert_trees_all_close(policy.log_prob(jnp.asarray(raw)), log_p, rtol=1e-5)
    chex.assert_trees_all_close(policy.entropy(), normal.entropy().sum(-1), rtol=1e-5)


@pytest.mark.parametrize("size", [1, 3])
def test_gaussian_entropy_sums_components_once(size):
    """PROP-6.3, R-D5, R-D19: D·(½ ln 2πe + ln .85), and not D times that."""
    policy = DiagGaussian(jnp.zeros((2, size)), jnp.full((2, size), 0.85))
    want = size * (0.5 * math.log(2 * math.pi * math.e) + math.log(0.85))
    chex.assert_trees_all_close(policy.entropy(), np.array([want, want]), rtol=1e-6)


def test_gaussian_kl_by_hand():
    """PROP-7.6: KL(N(0, .85) ‖ N(.1, .9)) = .00931891; squashing does not change it."""
    for cls in (DiagGaussian, TanhGaussian, SigmoidGaussian):
        old = cls(jnp.array([0.0]), jnp.array([0.85]))
        new = cls(jnp.array([0.1]), jnp.array([0.9]))
        chex.assert_trees_all_close(old.kl(new), 0.00931891, rtol=0, atol=2e-8)


def test_gaussian_kl_keeps_its_digits_when_policies_almost_agree():
    scale = np.array([1.0, 1.0 + 2.0**-12])
    old, new = (DiagGaussian(jnp.zeros(1), jnp.array([s])) for s in scale)
    log_ratio = np.log(scale[1] / scale[0])
    want = log_ratio + 0.5 * math.exp(-2 * log_ratio) - 0.5
    chex.assert_trees_all_close(old.kl(new), want, rtol=2e-3)


def test_gaussian_samples_have_the_right_law(key):
    policy = DiagGaussian(jnp.full((20_000, 1), 2.0), jnp.full((20_000, 1), 0.5))
    samples = np.asarray(policy.sample(key)).ravel()
    assert stats.kstest(samples, stats.norm(2.0, 0.5).cdf).pvalue > 1e-3


def test_gaussian_actions_are_clipped_and_raw_actions_are_not(key):
    policy = DiagGaussian(jnp.zeros(2), jnp.full(2, 100.0), low=(-1, 0), high=2)
    raw = jnp.array([-5.0, 7.0])
    chex.assert_trees_all_equal(policy.to_action(raw), np.array([-1.0, 2.0]))
    chex.assert_trees_all_equal(
        policy.to_action(jnp.array([0.5, 0.5])), np.array([0.5, 0.5])
    )
    assert jnp.abs(policy.sample(key)).max() > 2
    unbounded = DiagGaussian(jnp.zeros(2), jnp.ones(2))
    chex.assert_trees_all_equal(unbounded.to_action(raw), raw)


@pytest.mark.parametrize("cls", SQUASHED)
@pytest.mark.parametrize(("low", "high"), BOUNDS)
def test_squashed_log_prob_integrates_to_one(cls, low, high):
    """PROP-21.1: over the environment's actions, in their units."""
    action, step = np.linspace(low, high, 20_001, retstep=True)
    raw = unsquash(cls, (action[1:-1] - low) / (high - low))[:, None]
    shape = raw.shape
    policy = cls(jnp.full(shape, 0.3), jnp.full(shape, 0.6), low=low, high=high)
    density = np.exp(np.asarray(policy.log_prob(jnp.asarray(raw)), np.float64))
    chex.assert_trees_all_close(density.sum() * step, 1.0, rtol=0, atol=1e-4)
    chex.assert_trees_all_close(
        policy.to_action(raw)[:, 0], action[1:-1], rtol=0, atol=1e-4
    )


@pytest.mark.parametrize("cls", SQUASHED)
def test_squashed_log_prob_is_the_textbook_density(cls):
    """PROP-21.1: componentwise, then summed."""
    fraction = np.array([0.01, 0.3, 0.999])
    loc, scale = np.array([-0.5, 0.2, 1.0]), np.array([0.9, 0.5, 0.7])
    low, high = np.array([-1.0, 0.0, 2.0]), np.array([1.0, 10.0, 2.5])
    policy = cls(jnp.asarray(loc), jnp.asarray(scale), low=low, high=high)
    got = policy.log_prob(jnp.asarray(unsquash(cls, fraction)))
    want = textbook_log_density(cls, fraction, loc, scale, high - low).sum()
    chex.assert_trees_all_close(got, want, rtol=1e-5)


def log_jacobian(cls, low, high):
    """What squashing takes from the density, as a function of the raw action."""

    def at(u):
        loc, scale = jnp.array([u]), jnp.ones(1)
        policy = cls(jax.lax.stop_gradient(loc), scale, low=low, high=high)
        return DiagGaussian(policy.loc, scale).log_prob(loc) - policy.log_prob(loc)

    return at


@pytest.mark.parametrize(
    ("cls", "low", "values"),
    [
        (SigmoidGaussian, 0.0, {0: -1.386294, 2: -2.253856, 10: -10.000091}),
        (TanhGaussian, -1.0, {0: 0, 2: -2.650005, 10: -18.613706, 20: -38.613706}),
    ],
)
def test_log_jacobians_by_hand(cls, low, values):
    """PROP-21.2: also far out, where 1 − tanh² underflows."""
    at = log_jacobian(cls, low, 1.0)
    for u, want in values.items():
        chex.assert_trees_all_close(at(float(u)), want, rtol=1e-6, atol=1e-6)
        chex.assert_trees_all_close(at(-float(u)), want, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("u", [-20.0, -1.0, 0.0, 0.5, 20.0])
def test_log_jacobians_keep_their_gradient_in_the_tails(u):
    """PROP-21.2: d/du ln(1 − tanh² u) = −2 tanh u; ln σ'(u) gives 1 − 2 σ(u)."""
    tanh = jax.grad(log_jacobian(TanhGaussian, -1.0, 1.0))(u)
    sigmoid = jax.grad(log_jacobian(SigmoidGaussian, 0.0, 1.0))(u)
    chex.assert_trees_all_close(tanh, -2 * np.tanh(u), rtol=0, atol=1e-5)
    chex.assert_trees_all_close(sigmoid, 1 - 2 * special.expit(u), rtol=0, atol=1e-5)


@pytest.mark.parametrize("cls", SQUASHED)
@pytest.mark.parametrize(("loc", "scale"), [(0.0, 0.2), (1.0, 0.85), (0.0, 1.5)])
def test_squashed_entropy_matches_integration(cls, loc, scale):
    """−∫ p ln p, from the textbook density in float64."""
    low, high = -1.0, 3.0
    raw = np.linspace(loc - 10 * scale, loc + 10 * scale, 20_001)
    fraction = squash(cls, raw)
    keep = (fraction > 0) & (fraction < 1 - 1e-9)
    log_p = textbook_log_density(cls, fraction[keep], loc, scale, high - low)
    weight = stats.norm.pdf(raw[keep], loc, scale) * (raw[1] - raw[0])
    got = one(cls, loc, scale, low, high).entropy()
    chex.assert_trees_all_close(got, -(weight * log_p).sum(), rtol=0, atol=2e-5)


@pytest.mark.parametrize("cls", SQUASHED)
def test_wider_bounds_add_their_logarithm_to_the_entropy(cls):
    narrow, wide = (one(cls, 0.3, 0.7, 0.0, high).entropy() for high in (1.0, 8.0))
    chex.assert_trees_all_close(wide - narrow, math.log(8), rtol=1e-5)


@pytest.mark.parametrize("cls", SQUASHED)
@pytest.mark.parametrize(("low", "high"), BOUNDS)
def test_squashed_actions_stay_inside_and_rise(cls, low, high):
    raw = jnp.array([[-1e4], [-100.0], [-1.0], [0.0], [1.0], [100.0], [1e4]])
    policy = cls(jnp.zeros_like(raw), jnp.ones_like(raw), low=low, high=high)
    action = np.asarray(policy.to_action(raw))[:, 0]
    assert action[0] == np.float32(low)
    assert action[-1] == np.float32(high)
    assert (np.diff(action) >= 0).all()
    assert (np.diff(action[1:-1]) > 0).all()
    chex.assert_trees_all_close(action[3], (low + high) / 2, rtol=1e-6, atol=1e-8)


@pytest.mark.parametrize("cls", SQUASHED)
def test_extreme_raw_actions_keep_log_prob_finite(cls):
    policy = one(cls, 0.0, 1.0, -1.0, 1.0)
    for u in (-100.0, 100.0):
        value, gradient = jax.value_and_grad(policy.log_prob)(jnp.array([u]))
        chex.assert_tree_all_finite(value)
        chex.assert_tree_all_finite(gradient)


@pytest.mark.parametrize(
    ("low", "high"), [(1.0, 1.0), (2.0, 1.0), ((0.0, 1.0), 0.5), (math.nan, 1.0)]
)
@pytest.mark.parametrize("cls", [DiagGaussian, TanhGaussian, SigmoidGaussian])
def test_empty_intervals_are_rejected(cls, low, high):
    with pytest.raises(ValueError, match="low"):
        cls(jnp.zeros(2), jnp.ones(2), low=low, high=high)


@pytest.mark.parametrize(
    ("low", "high"),
    [(0.0, math.inf), (-math.inf, 0.0), (-3e38, 3e38), (-1.7e308, 1.7e308)],
)
@pytest.mark.parametrize("cls", SQUASHED)
def test_squashed_bounds_must_be_finite(cls, low, high):
    """Their difference too, in float32: every action would be the upper bound."""
    with pytest.raises(ValueError, match="high: expected finite bounds"):
        cls(jnp.zeros(2), jnp.ones(2), low=low, high=high)


def test_kl_needs_the_same_squash():
    """KL is that of the raw actions only where both are mapped alike."""
    args = jnp.zeros(1), jnp.ones(1)
    policy = TanhGaussian(*args)
    for other in (TanhGaussian(*args, high=2.0), SigmoidGaussian(*args)):
        with pytest.raises(AssertionError):
            policy.kl(other)


def test_bounds_may_be_arrays_and_policies_stay_hashable_structures():
    bounds = jnp.array([0.0, 1.0]), np.array([2.0, 3.0])
    arrays = TanhGaussian(jnp.zeros(2), jnp.ones(2), *bounds)
    tuples = TanhGaussian(jnp.zeros(2), jnp.ones(2), (0, 1), (2, 3))
    chex.assert_trees_all_equal_structs(arrays, tuples)
    first, second = (hash(jax.tree.structure(x)) for x in (arrays, tuples))
    assert first == second


@pytest.mark.parametrize("cls", SQUASHED)
def test_squashed_actions_lead_back_to_raw_ones(cls):
    """By the inverse in float64; the ends of an interval to finite ones."""
    low, high = (-1.0, 0.0), (1.0, 5.0)
    policy = cls(jnp.zeros((5, 2)), jnp.ones((5, 2)), low=low, high=high)
    fraction = np.random.default_rng(0).uniform(0.01, 0.99, (5, 2))
    raw = policy.to_raw(jnp.float32(fraction * [2, 5] + [-1, 0]))
    chex.assert_trees_all_close(raw, unsquash(cls, fraction), rtol=1e-4, atol=1e-4)
    for ends in (low, high):
        raw = policy.to_raw(jnp.broadcast_to(jnp.array(ends), (5, 2)))
        chex.assert_tree_all_finite((raw, policy.log_prob(raw)))

"""Action distributions against textbook densities in float64."""

import math

import chex
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import special, stats

from ppo_jax.networks.distributions import (
    Categorical,
    DiagGaussian,
    MultiCategorical,
    SigmoidGaussian,
    TanhGaussian,
    mask_logits,
)

SQUASHED = [TanhGaussian, SigmoidGaussian]
BOUNDS = [(-1.0, 1.0), (0.0, 1.0), (-0.1, 0.2), (5.0, 25.0)]


def make(name, batch=(), dtype=jnp.float32, seed=0):
    """One distribution of each kind; two components, where it has several."""
    rng = np.random.default_rng(seed)

    def normal(*shape):
        return jnp.asarray(rng.normal(size=(*batch, *shape)), dtype)

    def positive(*shape):
        return jnp.asarray(rng.uniform(0.3, 1.2, (*batch, *shape)), dtype)

    if name == "categorical":
        return Categorical(normal(4))
    if name == "masked":
        mask = jnp.broadcast_to(jnp.array([True, False, True, True]), (*batch, 4))
        return Categorical(mask_logits(normal(4), mask))
    if name == "multi_categorical":
        return MultiCategorical((normal(3), normal(2)))
    if name == "gaussian":
        return DiagGaussian(normal(2), positive(2), low=-1.0, high=(1.0, 2.0))
    squashed = {"tanh": TanhGaussian, "sigmoid": SigmoidGaussian}[name]
    return squashed(normal(2), positive(2), low=(-1.0, 0.0), high=(1.0, 5.0))


NAMES = ["categorical", "masked", "multi_categorical", "gaussian", "tanh", "sigmoid"]
every = pytest.mark.parametrize("name", NAMES)


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


# What every distribution keeps.


@every
@pytest.mark.parametrize("batch", [(), (2, 3)])
def test_every_result_has_the_leading_axes_and_float32(name, batch, key):
    """R-D5: entropy is `[...]`: components are already summed."""
    policy, other = make(name, batch), make(name, batch, seed=1)
    raw = policy.sample(key)
    for result in (policy.log_prob(raw), policy.entropy(), policy.kl(other)):
        chex.assert_shape(result, batch)
        chex.assert_type(result, jnp.float32)
    chex.assert_equal_shape([raw, policy.mode(), policy.to_action(raw)])
    chex.assert_type(raw, policy.mode().dtype)


@every
def test_an_action_leads_back_to_a_raw_one(name, key):
    """Of the same density; the ends of an interval to finite ones."""
    policy = make(name, (5,))
    action = policy.to_action(policy.sample(key))
    raw = policy.to_raw(action)
    chex.assert_trees_all_close(policy.to_action(raw), action, rtol=1e-5, atol=1e-5)
    if name in ("tanh", "sigmoid"):
        fraction = (np.asarray(action, np.float64) - [-1, 0]) / [2, 5]
        expected = unsquash(type(policy), fraction)
        chex.assert_trees_all_close(raw, expected, rtol=1e-4, atol=1e-4)
        ends = jnp.broadcast_to(jnp.array([-1.0, 5.0]), (5, 2))
        chex.assert_tree_all_finite(policy.log_prob(policy.to_raw(ends)))


@every
def test_low_precision_parameters_are_computed_in_float32(name, key):
    low = make(name, (3,), jnp.bfloat16)
    high = jax.tree.map(lambda x: x.astype(jnp.float32), low)
    raw = low.sample(key)
    chex.assert_trees_all_equal(raw, high.sample(key))
    assert raw.dtype in (jnp.float32, jnp.int32)
    chex.assert_trees_all_equal(low.mode(), high.mode())
    chex.assert_trees_all_equal(low.log_prob(raw), high.log_prob(raw))
    chex.assert_trees_all_equal(low.entropy(), high.entropy())
    chex.assert_type(low.entropy(), jnp.float32)


@every
def test_batched_vmapped_and_jitted_agree(name, key):
    policy, other = make(name, (3,)), make(name, (3,), seed=1)
    raw = policy.sample(key)

    def measure(policy, other, raw):
        return policy.log_prob(raw), policy.entropy(), policy.kl(other)

    mapped = jax.jit(jax.vmap(measure))(policy, other, raw)
    for got, want in zip(mapped, measure(policy, other, raw), strict=True):
        chex.assert_trees_all_close(got, want, rtol=1e-5, atol=1e-6)


@every
def test_survives_gathers_and_scans(name):
    """Bounds are static: only parameters have leading axes."""
    policy = make(name, (3,))
    chex.assert_tree_shape_prefix(policy, (3,))
    first = jax.tree.map(lambda x: x[0], policy)
    _, entropies = jax.lax.scan(lambda c, p: (c, p.entropy()), None, policy)
    chex.assert_trees_all_close(first.entropy(), policy.entropy()[0], rtol=1e-6)
    chex.assert_trees_all_close(entropies, policy.entropy(), rtol=1e-6)


@every
def test_kl_is_zero_to_itself_and_positive_to_others(name):
    policy, other = make(name, (3,)), make(name, (3,), seed=1)
    chex.assert_trees_all_equal(policy.kl(policy), 0.0)
    assert (policy.kl(other) > 1e-3).all()


@every
def test_kl_and_entropy_match_samples(name, key):
    policy, other = make(name), make(name, seed=1)
    raw = jax.vmap(policy.sample)(jax.random.split(key, 20_000))
    log_p = np.asarray(jax.vmap(policy.log_prob)(raw), np.float64)
    log_q = np.asarray(jax.vmap(other.log_prob)(raw), np.float64)
    for got, samples in ((policy.entropy(), -log_p), (policy.kl(other), log_p - log_q)):
        error = samples.std() / np.sqrt(samples.size)
        assert abs(got - samples.mean()) < 4 * error


@every
def test_mode_is_the_most_likely_raw_action(name):
    """For squashed policies: of the normal distribution below."""
    policy = make(name)
    below = DiagGaussian(policy.loc, policy.scale) if hasattr(policy, "loc") else policy
    best = below.log_prob(policy.mode())
    raws = jax.vmap(policy.sample)(jax.random.split(jax.random.key(1), 50))
    assert (jax.vmap(below.log_prob)(raws) <= best).all()


@every
def test_gradients_are_finite(name, key):
    policy, other = make(name), make(name, seed=1)
    raw = policy.sample(key)

    def total(policy):
        return policy.log_prob(raw) + policy.entropy() + policy.kl(other)

    for leaf in jax.tree.leaves(jax.grad(total)(policy)):
        chex.assert_tree_all_finite(leaf)
        assert (leaf != 0).any()


@every
def test_wrong_shapes_are_rejected(name, key):
    """A `[1, ...]` action never broadcasts against a batch."""
    policy = make(name, (3,))
    raw = policy.sample(key)
    with pytest.raises(AssertionError):
        policy.log_prob(raw[:1])
    with pytest.raises(AssertionError):
        policy.kl(make(name, (1,)))


# Discrete actions.


def test_categorical_kl_by_hand():
    """PROP-7.1, R-E5: both directions for p = (.6, .3, .1), q = (.5, .35, .15)."""
    p = Categorical(jnp.log(jnp.array([0.6, 0.3, 0.1])))
    q = Categorical(jnp.log(jnp.array([0.5, 0.35, 0.15])) + 3.0)
    chex.assert_trees_all_close(p.kl(q), 0.0226012, rtol=0, atol=2e-7)
    chex.assert_trees_all_close(q.kl(p), 0.0236117, rtol=0, atol=2e-7)


def test_categorical_against_scipy():
    logits = np.random.default_rng(0).normal(size=(5, 4)) * 3
    raw = np.array([0, 1, 2, 3, 1])
    policy = Categorical(jnp.asarray(logits))
    p = special.softmax(logits, axis=-1)
    log_p = special.log_softmax(logits, axis=-1)[np.arange(5), raw]
    chex.assert_trees_all_close(policy.log_prob(jnp.asarray(raw)), log_p, rtol=1e-5)
    chex.assert_trees_all_close(policy.entropy(), stats.entropy(p, axis=-1), rtol=1e-5)


def test_categorical_samples_have_the_right_frequencies(key):
    p = np.array([0.1, 0.2, 0.7])
    policy = Categorical(jnp.broadcast_to(jnp.log(p), (20_000, 3)))
    counts = np.bincount(policy.sample(key), minlength=3)
    assert stats.chisquare(counts, p * counts.sum()).pvalue > 1e-3


def test_categorical_needs_whole_numbers():
    with pytest.raises(AssertionError):
        Categorical(jnp.zeros(3)).log_prob(jnp.array(1.0))


def test_masked_actions_do_not_exist(key):
    """PROP-21.6: probability 0, absent from samples, mode, entropy and KL."""
    logits, others = jnp.array([0.5, 9.0, -1.0, 0.2]), jnp.array([0.1, 0.0, 1.0, 2.0])
    mask = jnp.array([True, False, True, True])
    policy, other = (Categorical(mask_logits(x, mask)) for x in (logits, others))
    legal, legal_other = (Categorical(x[mask]) for x in (logits, others))

    assert jnp.exp(policy.log_prob(jnp.array(1))) == 0
    assert policy.mode() == 0
    assert 1 not in jax.vmap(policy.sample)(jax.random.split(key, 500))
    chex.assert_trees_all_close(policy.entropy(), legal.entropy(), rtol=1e-6)
    chex.assert_trees_all_close(policy.kl(other), legal.kl(legal_other), rtol=1e-5)
    chex.assert_trees_all_close(
        policy.log_prob(jnp.array(3)), legal.log_prob(jnp.array(2)), rtol=1e-6
    )


@pytest.mark.parametrize("illegal", [0.0, 1e30, -jnp.inf, jnp.inf, jnp.nan])
def test_gradients_with_a_mask_are_finite_and_avoid_illegal_actions(illegal):
    """PROP-21.6: whatever the network says about an illegal action."""
    mask = jnp.array([True, False, True])

    def total(logits):
        policy = Categorical(mask_logits(logits, mask))
        other = Categorical(mask_logits(jnp.array([1.0, 2.0, 3.0]), mask))
        return policy.log_prob(jnp.array(2)) + policy.entropy() + policy.kl(other)

    value, gradient = jax.value_and_grad(total)(jnp.array([0.3, illegal, -0.2]))
    chex.assert_tree_all_finite(value)
    chex.assert_tree_all_finite(gradient)
    assert gradient[1] == 0
    assert (gradient[mask] != 0).all()


def test_masks_hold_in_half_precision():
    """PROP-21.6: float16 could not represent the masked logit."""
    logits = jnp.zeros(2, jnp.float16)
    policy = Categorical(mask_logits(logits, jnp.array([False, True])))
    assert policy.log_prob(jnp.array(1)) == 0
    assert policy.entropy() == 0


@pytest.mark.parametrize("mask", [jnp.ones((1, 3), bool), jnp.ones((2, 3))])
def test_masks_must_fit_and_be_boolean(mask):
    with pytest.raises(AssertionError):
        mask_logits(jnp.zeros((2, 3)), mask)


def test_multi_categorical_is_a_product():
    first, second = np.array([0.2, 0.3, 0.5]), np.array([0.9, 0.1])
    joint = np.outer(first, second)
    policy = MultiCategorical((jnp.log(first), jnp.log(second)))
    other = MultiCategorical((jnp.zeros(3), jnp.zeros(2)))
    for i, j in np.ndindex(joint.shape):
        log_p = policy.log_prob(jnp.array([i, j]))
        chex.assert_trees_all_close(log_p, np.log(joint[i, j]), rtol=1e-5)
    entropy = stats.entropy(joint.ravel())
    chex.assert_trees_all_close(policy.entropy(), entropy, rtol=1e-5)
    chex.assert_trees_all_close(policy.kl(other), math.log(6) - entropy, rtol=1e-5)
    chex.assert_trees_all_equal(policy.mode(), np.array([2, 0]))


def test_components_of_multi_categorical_are_sampled_independently(key):
    logits = jnp.zeros((4_000, 2))
    raw = MultiCategorical((logits, logits)).sample(key)
    chex.assert_type(raw, jnp.int32)
    assert abs(np.corrcoef(raw[:, 0], raw[:, 1])[0, 1]) < 0.1


# Continuous actions.


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


@pytest.mark.parametrize("cls", SQUASHED)
def test_squashed_bounds_must_be_finite(cls):
    with pytest.raises(ValueError, match="high"):
        cls(jnp.zeros(2), jnp.ones(2), low=0.0, high=math.inf)


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


def test_a_sure_policy_has_a_margin_with_a_gradient():
    """Its probability is 1 to the last digit, where an attack would be stuck (A3)."""
    logits, action = jnp.array([140.0, 1.0, -3.0]), jnp.array(0)
    sure = jax.value_and_grad(lambda logits: Categorical(logits).margin(action))
    value, gradient = sure(logits)
    assert value == 139 and gradient.tolist() == [1, -1, 0]
    stuck = jax.grad(lambda logits: Categorical(logits).log_prob(action))(logits)
    assert not stuck.any()
    assert Categorical(logits).margin(jnp.array(1)) == -139


def test_margins_of_several_components_add_up():
    policy = MultiCategorical((jnp.array([2.0, 0.0]), jnp.array([0.0, 5.0, 1.0])))
    assert policy.margin(jnp.array([0, 1])) == 2 + 4


@pytest.mark.parametrize("name", ["gaussian", "tanh", "sigmoid"])
def test_no_action_is_next_to_another_in_an_interval(name, key):
    policy = make(name, batch=(3,))
    raw = policy.sample(key)
    chex.assert_trees_all_equal(policy.margin(raw), policy.log_prob(raw))

"""What every action distribution keeps."""

import chex
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from ppo_jax.networks.distributions import (
    Categorical,
    DiagGaussian,
    MultiCategorical,
    SigmoidGaussian,
    TanhGaussian,
    mask_logits,
)


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
        mask = np.broadcast_to(np.array([True, False, True, True]), (*batch, 4))
        return Categorical(mask_logits(normal(4), mask))
    if name == "multi_categorical":
        return MultiCategorical((normal(3), normal(2)))
    if name == "gaussian":
        return DiagGaussian(normal(2), positive(2), low=-1.0, high=(1.0, 2.0))
    squashed = {"tanh": TanhGaussian, "sigmoid": SigmoidGaussian}[name]
    return squashed(normal(2), positive(2), low=(-1.0, 0.0), high=(1.0, 5.0))


NAMES = ["categorical", "masked", "multi_categorical", "gaussian", "tanh", "sigmoid"]
every = pytest.mark.parametrize("name", NAMES)


@every
@pytest.mark.parametrize("batch", [(), (2, 3)])
def test_every_result_has_the_leading_axes_and_float32(name, batch, key):
    """R-D5: entropy is `[...]`: components are already summed."""
    policy, other = make(name, batch), make(name, batch, seed=1)

    def use(policy, other, key):
        raw = policy.sample(key)
        results = policy.log_prob(raw), policy.entropy(), policy.kl(other)
        return results, (raw, policy.mode(), policy.to_action(raw))

    results, actions = jax.eval_shape(use, policy, other, key)
    for result in results:
        assert (result.shape, result.dtype) == (batch, jnp.float32)
    raw, mode, _ = actions
    assert len({action.shape for action in actions}) == 1 and raw.dtype == mode.dtype


@every
def test_an_action_leads_back_to_a_raw_one(name, key):

    @jax.jit
    def there_and_back(policy):
        action = policy.to_action(policy.sample(key))
        return action, policy.to_action(policy.to_raw(action))

    action, again = there_and_back(make(name, (5,)))
    chex.assert_trees_all_close(again, action, rtol=1e-5, atol=1e-5)


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

    @jax.jit
    def entropies(policy):
        first = jax.tree.map(lambda x: x[0], policy)
        _, scanned = jax.lax.scan(lambda c, p: (c, p.entropy()), None, policy)
        return first.entropy(), scanned, policy.entropy()

    first, scanned, expected = jax.device_get(entropies(policy))
    chex.assert_trees_all_close(first, expected[0], rtol=1e-6)
    chex.assert_trees_all_close(scanned, expected, rtol=1e-6)


@every
def test_kl_is_zero_to_itself_and_positive_to_others(name):
    policy, other = make(name, (3,)), make(name, (3,), seed=1)
    chex.assert_trees_all_equal(policy.kl(policy), 0.0)
    assert (policy.kl(other) > 1e-3).all()


@every
def test_kl_and_entropy_match_samples(name, key):

    @jax.jit
    def measured(policy, other):
        raw = jax.vmap(policy.sample)(jax.random.split(key, 20_000))
        likely = [jax.vmap(each.log_prob)(raw) for each in (policy, other)]
        return likely, policy.entropy(), policy.kl(other)

    likely, entropy, kl = jax.device_get(measured(make(name), make(name, seed=1)))
    log_p, log_q = np.asarray(likely, np.float64)
    for got, samples in ((entropy, -log_p), (kl, log_p - log_q)):
        error = samples.std() / np.sqrt(samples.size)
        assert abs(got - samples.mean()) < 4 * error


@every
def test_mode_is_the_most_likely_raw_action(name):
    """For squashed policies: of the normal distribution below."""

    @jax.jit
    def found(policy):
        normal = hasattr(policy, "loc")
        below = DiagGaussian(policy.loc, policy.scale) if normal else policy
        raws = jax.vmap(policy.sample)(jax.random.split(jax.random.key(1), 50))
        return jax.vmap(below.log_prob)(raws), below.log_prob(policy.mode())

    others, best = jax.device_get(found(make(name)))
    assert (others <= best).all()


@every
def test_gradients_are_finite(name, key):
    policy, other = make(name), make(name, seed=1)
    raw = policy.sample(key)

    def total(policy):
        return policy.log_prob(raw) + policy.entropy() + policy.kl(other)

    for leaf in jax.tree.leaves(jax.jit(jax.grad(total))(policy)):
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


@pytest.mark.parametrize("name", ["gaussian", "tanh", "sigmoid"])
def test_no_action_is_next_to_another_in_an_interval(name, key):
    policy = make(name, batch=(3,))
    raw = policy.sample(key)
    chex.assert_trees_all_equal(policy.margin(raw), policy.log_prob(raw))

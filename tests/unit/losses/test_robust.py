"""The divergence between what a policy does at clean and at attacked observations."""

import chex
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from ppo_jax.losses import policy_smoothness_loss
from ppo_jax.networks.distributions import Categorical, DiagGaussian, TanhGaussian

smoothness = jax.jit(policy_smoothness_loss)


def gaussian(params, obs):
    """A linear policy with its own log-scales."""
    scale = jnp.exp(jnp.broadcast_to(params["log_scale"], (obs.shape[0], 2)))
    return DiagGaussian(obs @ params["w"], scale)


PARAMS = {
    "w": jnp.array([[1.0, -0.5], [0.3, 2.0], [-1.0, 0.7]]),
    "log_scale": jnp.array([-0.5, 0.2]),
}


@pytest.mark.parametrize(
    ("clean", "perturbed"),
    [
        (
            DiagGaussian(jnp.array([0.0, 1.0]), jnp.array([0.85, 1.5])),
            DiagGaussian(jnp.array([0.1, 0.5]), jnp.array([0.9, 1.0])),
        ),
        (
            TanhGaussian(jnp.array([0.0, 1.0]), jnp.array([0.85, 0.5])),
            TanhGaussian(jnp.array([0.1, 0.5]), jnp.array([0.9, 0.6])),
        ),
        (
            Categorical(jnp.log(jnp.array([0.6, 0.3, 0.1]))),
            Categorical(jnp.log(jnp.array([0.5, 0.35, 0.15]))),
        ),
    ],
    ids=lambda policy: type(policy).__name__,
)
def test_divergence_equals_monte_carlo(clean, perturbed, key):
    """A5, R-A16: analytic, so the same number without a sample."""
    got = smoothness(clean, perturbed)

    def ratio(key):
        action = clean.sample(key)
        return clean.log_prob(action) - perturbed.log_prob(action)

    samples = np.asarray(jax.jit(jax.vmap(ratio))(jax.random.split(key, 40_000)))
    error = 4 * samples.std() / np.sqrt(samples.size)
    chex.assert_trees_all_close(got, samples.mean(), rtol=0, atol=error)
    assert smoothness(perturbed, clean) != got


def test_divergence_by_hand(variant):
    """R-A16, PROP-7.6: N(0, .85) against N(.1, .9)."""
    clean = DiagGaussian(jnp.zeros((1, 1)), jnp.full((1, 1), 0.85))
    perturbed = DiagGaussian(jnp.full((1, 1), 0.1), jnp.full((1, 1), 0.9))
    got = variant(policy_smoothness_loss)(clean, perturbed)
    chex.assert_trees_all_close(got, np.array([0.00931891]), rtol=1e-5)


@jax.jit
def with_slopes(clean, perturbed):
    """The loss of each example, and the gradient of their sum."""

    def total(perturbed):
        each = policy_smoothness_loss(clean, perturbed)
        return each.sum(), each

    slopes, each = jax.grad(total, has_aux=True)(perturbed)
    return each, slopes


@pytest.mark.parametrize("seed", range(3))
def test_divergence_is_finite_and_not_negative(seed):
    """A5, R-A16: means to ±1e6, scales from 1e-6 to 1e6, logits to ±1e3."""
    rng = np.random.default_rng(seed)
    sign = rng.choice([-1, 1], (2, 500, 2))
    loc = np.float32(sign * 10.0 ** rng.uniform(-6, 6, (2, 500, 2)))
    scale = np.float32(10.0 ** rng.uniform(-6, 6, (2, 500, 2)))
    logits = np.float32(rng.uniform(-1e3, 1e3, (2, 500, 3)))
    # Closer than rounding: there the sum itself comes out below 0.
    near = np.float32(rng.normal(size=(500, 3)) * np.ones((2, 1, 1)))
    near[1] += np.float32(1e-5 * rng.normal(size=(500, 3)))
    for policies in (
        [DiagGaussian(loc[i], scale[i]) for i in range(2)],
        [Categorical(logits[i]) for i in range(2)],
        [Categorical(near[i]) for i in range(2)],
    ):
        kl, gradient = jax.device_get(with_slopes(*policies))
        chex.assert_tree_all_finite((kl, gradient))
        assert (kl >= 0).all()


def test_the_same_observation_costs_nothing(key):
    """R-A16: no perturbation, no loss and no gradient."""
    obs = jax.random.normal(key, (5, 3))

    def loss(params):
        return policy_smoothness_loss(
            gaussian(PARAMS, obs), gaussian(params, obs)
        ).sum()

    value, gradient = jax.jit(jax.value_and_grad(loss))(PARAMS)
    assert value == 0
    for leaf in jax.tree.leaves(gradient):
        chex.assert_trees_all_close(leaf, 0.0, rtol=0, atol=1e-6)


def test_only_the_perturbed_side_is_pulled(key):
    """A6, R-A16: its gradient is that against a constant clean policy, and not zero."""
    obs, moved = jax.random.normal(key, (2, 5, 3))

    def loss(clean, perturbed):
        return policy_smoothness_loss(
            gaussian(clean, obs), gaussian(perturbed, moved)
        ).mean()

    clean, perturbed = jax.jit(jax.grad(loss, argnums=(0, 1)))(PARAMS, PARAMS)
    both = jax.jit(jax.grad(lambda params: loss(params, params)))(PARAMS)
    for leaf in jax.tree.leaves(clean):
        chex.assert_trees_all_equal(leaf, 0.0)
    assert all(np.abs(leaf).max() > 1e-3 for leaf in jax.tree.leaves(perturbed))
    chex.assert_trees_all_equal(both, perturbed)


def test_following_the_gradient_makes_a_policy_smooth(key):
    """A6: the penalty constrains the policy."""
    obs = jax.random.normal(key, (16, 3))
    moved = obs + 0.1

    def loss(params):
        return policy_smoothness_loss(
            gaussian(params, obs), gaussian(params, moved)
        ).mean()

    step = jax.jit(
        lambda p: jax.tree.map(lambda x, g: x - 0.3 * g, p, jax.grad(loss)(p))
    )
    params = PARAMS
    for _ in range(100):
        params = step(params)
    last, start = map(jax.jit(loss), (params, PARAMS))
    assert last < 0.2 * start

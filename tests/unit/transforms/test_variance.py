"""Moments over time against weighted means in float64."""

import functools

import chex
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from ppo_jax.transforms import variance

EPS = 0.01


def whole(leaf):
    """A leaf as it is."""
    return leaf, jnp.zeros(())


def centre(leaf):
    """Mean of a leaf, and variance within it."""
    return jnp.mean(leaf), jnp.var(leaf)


def sequence(steps=12):
    rng = np.random.default_rng(0)
    sizes = {"a": (), "b": (3,), "c": (2, 4)}
    return {
        name: 0.5 + rng.normal(size=(steps, *shape)) for name, shape in sizes.items()
    }


def follow(gradients, betas, statistic):
    """Moments after all gradients; and how many leaves were left out."""
    gradients = jax.tree.map(lambda x: jnp.asarray(x, jnp.float32), gradients)
    moments = variance.begin(jax.tree.map(lambda x: x[0], gradients), statistic)

    def step(moments, inputs):
        gradient, beta = inputs
        return variance.observe(moments, gradient, statistic, beta)

    moments, skipped = jax.lax.scan(step, moments, (gradients, jnp.asarray(betas)))
    return moments, skipped.sum()


@functools.cache
def following(statistic):
    """One function for all gradients and decays, so that it is compiled once."""
    return functools.partial(follow, statistic=statistic)


def shares(betas):
    """How much each gradient counts, from the recursion."""
    found = np.zeros(0)
    for beta in betas:
        found = np.append(beta * found, 1 - beta)
    return found / found.sum()


@pytest.mark.parametrize("statistic", [whole, centre])
@pytest.mark.parametrize("betas", [[0.9] * 12, [0.9, 0.5, 0.7] * 4])
def test_moments_are_those_of_a_weighted_sample(statistic, betas, variant):
    """Of what is followed over time, and with what varies within a step."""
    gradients = sequence()
    moved = variant(following(statistic))
    (_, mean, var), skipped = moved(gradients, np.float32(betas))
    share = shares(betas)
    assert skipped == 0
    for name, g in gradients.items():
        within = np.zeros(12)
        if statistic is centre:
            g = g.reshape(12, -1)
            g, within = g.mean(axis=1), g.var(axis=1)
        first = np.tensordot(share, g, 1)
        second = np.tensordot(share, (g - first) ** 2, 1) + share @ within
        chex.assert_trees_all_close(mean[name], first, rtol=2e-5, atol=1e-6)
        chex.assert_trees_all_close(var[name], second, rtol=2e-5, atol=1e-6)


def test_moments_of_constants_are_unbiased_from_the_first_step():
    """Modules 1.7.7: exact at every count, and after β changed."""
    constant = jnp.full(3, 0.3)
    moments = variance.begin(constant, centre)
    for t in range(1, 30):
        beta = 0.99 if t < 15 else 0.5
        moments, _ = variance.observe(moments, constant, centre, beta)
        assert moments.mean == jnp.mean(constant) and moments.variance == 0


def test_the_weight_is_that_of_finite_gradients():
    """1 − βᵗ, of each leaf by itself."""
    gradients = sequence(6)
    gradients["b"][2:4, 1] = np.nan
    moments, skipped = follow(gradients, [0.9] * 6, centre)
    expected = {"a": 1 - 0.9**6, "b": 1 - 0.9**4, "c": 1 - 0.9**6}
    chex.assert_trees_all_close(moments.weight, expected, rtol=1e-6)
    assert skipped == 2


def observe(before, gradient):
    return variance.observe(before, gradient, whole, 0.9)


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf, 1e30])
def test_a_leaf_whose_moments_are_not_finite_stays_as_it_was(bad, variant):
    """A number whose square is none as well; other leaves move on."""
    gradients = sequence(3)
    before, _ = jax.jit(following(whole))(gradients, np.full(3, 0.9, np.float32))
    ill = jax.tree.map(lambda x: np.float32(x[0]), gradients)
    ill["c"][1, 2] = bad
    after, skipped = variant(observe)(before, ill)
    assert skipped == 1
    for old, new in zip(before, after, strict=True):
        chex.assert_trees_all_equal(old["c"], new["c"])
        assert new["a"] != old["a"]


def test_gradients_of_any_type_are_followed_in_float32():
    """1 + 2⁻⁹ is the mean of numbers of which bfloat16 has each, but not that."""
    params = jnp.ones(4, jnp.bfloat16).at[0].set(1 + 2.0**-7)
    moments, _ = variance.observe(variance.begin(params, centre), params, centre, 0.5)
    chex.assert_type(jax.tree.leaves(moments), jnp.float32)
    assert moments.mean == 1 + 2.0**-9


@pytest.mark.parametrize("scale", [1.0, 1e-17])
def test_the_ratio_by_hand(scale, variant):
    """V = 3, M² = 5; V = 0, M² = 4; and V = 4, M = 0, where only eps bounds it."""
    moments = variance.Moments(
        weight={"a": 1.0, "b": 1.0, "c": 1.0},
        mean={"a": scale * jnp.array([1.0, 3.0]), "b": jnp.array(-2 * scale), "c": 0.0},
        variance={
            "a": scale**2 * jnp.array([2.0, 4.0]),
            "b": 0.0,
            "c": jnp.array(4 * scale**2),
        },
    )
    ratio, signal = variant(lambda m: variance.normalized(m, EPS))(moments)
    chex.assert_trees_all_close(ratio, np.array([3 / 5.08, 0.0, 100.0]), rtol=1e-5)
    expected = scale**2 * np.array([5.08, 4.04, 0.04])
    chex.assert_trees_all_close(signal, expected, rtol=1e-5)


def test_nothing_has_no_ratio_and_no_leaves_have_none():
    still = variance.begin({"w": jnp.zeros((2, 2))}, whole)
    chex.assert_trees_all_equal(variance.normalized(still, EPS), (jnp.zeros(1),) * 2)
    empty, skipped = variance.observe(variance.begin({}, whole), {}, whole, 0.9)
    assert skipped == 0
    chex.assert_trees_all_equal(variance.normalized(empty, EPS), (jnp.zeros(0),) * 2)

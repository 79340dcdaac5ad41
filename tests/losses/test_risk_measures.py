"""CVaR against hand-worked weights, integration and the normal distribution."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

from ppo_jax.losses import cvar, cvar_weights

ALPHAS = [0.01, 0.05, 0.1, 0.25, 0.3, 0.5, 0.625, 0.875, 0.9, 1.0]


def integrated(quantiles, alpha):
    """∫₀^α Q(u) du / α, from the piecewise-linear Lorenz curve in float64."""
    ordered = np.sort(quantiles)
    share = np.arange(ordered.size + 1) / ordered.size
    curve = np.concatenate([[0.0], np.cumsum(ordered) / ordered.size])
    return np.interp(alpha, share, curve) / alpha


@pytest.mark.parametrize(
    ("n", "alpha", "want"),
    [
        (4, 0.5, [0.5, 0.5]),
        (4, 0.3, [0.8333333, 0.1666667]),
        (4, 0.625, [0.4, 0.4, 0.2]),
        (4, 0.1, [1.0]),
        (4, 1.0, [0.25, 0.25, 0.25, 0.25]),
        (4, 1, [0.25, 0.25, 0.25, 0.25]),
        (21, 0.05, [0.952381, 0.047619]),
        (32, 0.05, [0.625, 0.375]),
        (1, 0.05, [1.0]),
    ],
)
def test_weights_by_hand(n, alpha, want):
    """PROP-13.1: the step rule."""
    weights = cvar_weights(n, alpha)
    assert weights.shape == (n,)
    assert weights.dtype == jnp.float32
    padded = np.pad(want, (0, n - len(want)))
    np.testing.assert_allclose(weights, padded, atol=1e-6)


@pytest.mark.parametrize("n", [1, 4, 21, 51])
@pytest.mark.parametrize("alpha", ALPHAS)
def test_weights_are_a_distribution(n, alpha):
    """PROP-13.2, PROP-13.7, R-D10: no negative weight; they cover exactly α."""
    weights = cvar_weights(n, alpha)
    assert (weights >= 0).all()
    np.testing.assert_allclose(weights.sum(), 1.0, rtol=1e-5)


@pytest.mark.parametrize("alpha", ALPHAS)
def test_cvar_matches_integration(alpha):
    """PROP-13.1, PROP-13.2: the exact tail mean of the step law."""
    q = np.random.default_rng(0).normal(size=(2, 3, 21)) * 5
    want = [[integrated(row, alpha) for row in rows] for rows in q]
    got = cvar(jnp.asarray(q), alpha)
    assert got.shape == (2, 3)
    np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-5)


def test_cvar_rises_continuously_with_alpha():
    """PROP-13.2, R-D10: q = (−10, 0, 0, 10), where the original jumped at .875."""
    q = jnp.array([-10.0, 0.0, 0.0, 10.0])
    alphas = jnp.linspace(0.005, 1.0, 400)
    values = np.asarray(jax.vmap(lambda alpha: cvar(q, alpha))(alphas))
    assert (np.diff(values) >= -1e-6).all()
    assert np.diff(values).max() < 0.15
    assert values.min() == -10.0
    np.testing.assert_allclose(values[-1], 0.0, atol=1e-6)
    np.testing.assert_allclose(cvar(q, 0.875), -2.5 / 0.875 + 1.25 / 0.875, rtol=1e-5)


@pytest.mark.parametrize("alpha", ALPHAS)
def test_cvar_lies_between_the_lowest_quantile_and_the_mean(alpha):
    """PROP-13.2, R-D10: and is the mean at α = 1."""
    q = np.random.default_rng(1).normal(size=(20, 8))
    got = np.asarray(cvar(jnp.asarray(q), alpha))
    assert (got >= q.min(axis=-1) - 1e-5).all()
    assert (got <= q.mean(axis=-1) + 1e-5).all()
    if alpha == 1.0:
        np.testing.assert_allclose(got, q.mean(axis=-1), atol=1e-6)


@pytest.mark.parametrize("alpha", [0.05, 0.3, 1.0])
def test_cvar_is_coherent_under_translation_and_scaling(alpha):
    """PROP-13.3."""
    q = jnp.asarray(np.random.default_rng(2).normal(size=12))
    base = cvar(q, alpha)
    np.testing.assert_allclose(cvar(q + 3.5, alpha), base + 3.5, rtol=1e-5)
    np.testing.assert_allclose(cvar(4.0 * q, alpha), 4.0 * base, rtol=1e-5)


@pytest.mark.parametrize("alpha", [0.05, 0.3, 1.0])
def test_cvar_does_not_depend_on_the_order(alpha):
    """PROP-13.4: crossing quantiles are sorted first."""
    rng = np.random.default_rng(3)
    q = np.sort(rng.normal(size=12))
    for _ in range(3):
        got = cvar(jnp.asarray(rng.permutation(q)), alpha)
        np.testing.assert_allclose(got, integrated(q, alpha), rtol=1e-5)


@pytest.mark.parametrize("alpha", [1e-6, 0.05, 0.2499, 0.25])
def test_a_tail_thinner_than_one_quantile_is_the_lowest(alpha):
    """PROP-13.5, R-D10: q = (0, 10, 20, 30), where the original said −4."""
    assert cvar(jnp.array([10.0, 0.0, 30.0, 20.0]), alpha) == 0.0


@pytest.mark.parametrize(
    "alpha", [0, 0.0, -0.1, 1.0001, 2, np.nan, np.inf, np.float32(0), jnp.array(1.5)]
)
def test_alpha_outside_its_range_is_an_error(alpha):
    """PROP-13.6."""
    with pytest.raises(ValueError, match="alpha"):
        cvar_weights(4, alpha)
    with pytest.raises(ValueError, match="alpha"):
        cvar(jnp.arange(4.0), alpha)


def test_weights_need_a_quantile_and_a_scalar():
    with pytest.raises(ValueError, match="num_quantiles"):
        cvar_weights(0, 0.5)
    with pytest.raises(AssertionError):
        cvar_weights(4, jnp.array([0.1, 0.5]))


def test_error_shrinks_with_more_quantiles():
    """PROP-13.7, R-C6: N(0, 1), α = .05; the error is one of discretisation only."""
    table = {11: -1.6906, 21: -1.9562, 32: -1.9746, 51: -2.0130, 101: -2.0424}
    errors = []
    for n, want in table.items():
        quantiles = stats.norm.ppf((np.arange(n) + 0.5) / n)
        got = cvar(jnp.asarray(quantiles), 0.05)
        np.testing.assert_allclose(got, want, atol=6e-5)
        errors.append(abs(got + 2.0627))
    assert errors == sorted(errors, reverse=True)


def test_alpha_may_be_traced_and_mapped():
    """A population tunes α in one program; the gradient reaches the tail only."""
    q = jnp.array([3.0, -1.0, 1.0, 5.0])
    got = jax.jit(jax.vmap(cvar, (None, 0)))(q, jnp.array([0.25, 0.5, 1.0]))
    np.testing.assert_allclose(got, [-1.0, 0.0, 2.0], atol=1e-6)
    gradient = jax.jit(jax.grad(cvar))(q, 0.375)
    np.testing.assert_allclose(gradient, [0.0, 2 / 3, 1 / 3, 0.0], atol=1e-6)
    assert jnp.isfinite(jax.grad(cvar, argnums=1)(q, 0.3))


def test_low_precision_quantiles_are_summed_in_float32():
    q = jnp.arange(64, dtype=jnp.bfloat16)
    got = cvar(q, 1.0)
    assert got.dtype == jnp.float32
    np.testing.assert_allclose(got, 31.5, rtol=1e-6)

"""Order statistics are those of a sort."""

import chex
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from ppo_jax.normalization import order

INF, NAN = np.inf, np.nan
MANY = np.random.default_rng(0).normal(size=(7, 11)).astype(np.float32)
SAMPLES = {
    "one": np.array([2.5], np.float32),
    "ties": np.array([1.0, 0.0, 1.0, -1.0, 1.0, -1.0], np.float32),
    "signs": np.array([-0.0, 0.0, -1e-38, 1e-38, -3e38, 3e38], np.float32),
    "infinite": np.array([INF, 0.0, -INF, 5.0], np.float32),
    "many": MANY,
    "of all sizes": MANY * 10.0 ** np.arange(-30, 36, 6, dtype=np.float32),
}


def at_every_rank(x):
    return order.smallest(x, jnp.arange(x.size))


@pytest.mark.parametrize("x", SAMPLES.values(), ids=SAMPLES)
def test_ranks_are_those_of_a_sort(x, variant):
    found = variant(at_every_rank)(x)
    chex.assert_trees_all_equal(found, np.sort(x, axis=None))


def test_only_what_is_valid_counts(variant):
    x = np.array([NAN, 4.0, -INF, 1.0, 2.0], np.float32)
    valid = np.array([False, True, False, True, True])
    ranks = jnp.array([2, 0, 1, 3, 99])
    found = variant(lambda x, valid: order.smallest(x, ranks, valid))(x, valid)
    chex.assert_trees_all_equal(found, np.array([4.0, 1.0, 2.0, NAN, NAN], np.float32))


@pytest.mark.parametrize("q", [0.0, 0.01, 0.25, 0.5, 0.99, 1.0])
def test_quantiles_are_interpolated(q, variant):
    found = variant(order.quantile)(MANY, np.float32(q))
    chex.assert_trees_all_close(found, np.quantile(MANY, q), rtol=1e-5)


@pytest.mark.parametrize("count", [1, 2, 7, 10, 76, 77])
def test_the_median_is_in_the_middle(count, variant):
    valid = (np.arange(MANY.size) < count).reshape(MANY.shape)
    found = variant(order.median)(np.where(valid, MANY, NAN), valid)
    chex.assert_trees_all_close(found, np.median(MANY[valid]), rtol=1e-6)


def test_nothing_has_no_median():
    assert np.isnan(order.median(jnp.ones(3), jnp.zeros(3, bool)))


def test_the_median_of_what_is_large_is_finite():
    large = jnp.full(2, 3e38)
    assert order.median(large, jnp.ones(2, bool)) == large[0]


def test_no_gradient_flows():
    chex.assert_trees_all_equal(
        jax.grad(lambda x: order.quantile(x, 0.3))(MANY), np.zeros_like(MANY)
    )

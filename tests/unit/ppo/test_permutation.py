"""Random orders: all there, and none more likely than another."""

import math

import chex
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from ppo_jax.ppo.permutation import permutation


@pytest.mark.parametrize("count", [1, 2, 3, 7, 64, 1000, 4096, 8209])
def test_an_order_has_every_index_once(count):
    order = jax.vmap(lambda key: permutation(key, count))(
        jax.random.split(jax.random.key(count), 5)
    )
    chex.assert_type(order, jnp.int32)
    expected = np.broadcast_to(np.arange(count), (5, count))
    chex.assert_trees_all_equal(np.sort(order, axis=1), expected)


def test_an_order_is_the_same_where_numbers_are_long_by_default():
    key = jax.random.key(2)
    with jax.enable_x64(True):
        order = permutation(key, 7)
    chex.assert_trees_all_equal(order, permutation(key, 7), strict=True)


@pytest.mark.parametrize(("count", "limit"), [(2, 10.8), (3, 20.5), (4, 49.7)])
def test_every_order_of_few_is_as_likely(count, limit):
    """χ² of all orders but one, below what one in a thousand exceeds."""
    keys = jax.random.split(jax.random.key(0), 24_000)
    orders = jax.jit(jax.vmap(lambda key: permutation(key, count)))(keys)
    codes = np.asarray(orders) @ count ** np.arange(count)
    counts = np.unique(codes, return_counts=True)[1]
    assert counts.size == math.factorial(count)
    expected = len(keys) / counts.size
    assert ((counts - expected) ** 2 / expected).sum() < limit


@pytest.mark.parametrize("count", [37, 64])
def test_every_index_is_as_often_in_every_place(count):
    keys = jax.random.split(jax.random.key(1), 20_000)
    orders = np.asarray(jax.jit(jax.vmap(lambda key: permutation(key, count)))(keys))
    seen = np.stack([np.bincount(place, minlength=count) for place in orders.T])
    expected = len(keys) / count
    square = ((seen - expected) ** 2 / expected).sum()
    freedom = (count - 1) ** 2
    assert abs(square - freedom) < 4 * (2 * freedom) ** 0.5


def test_pairs_are_as_often_in_one_minibatch():
    """Pairs of 512, in one of four."""
    keys = jax.random.split(jax.random.key(0), 2000)
    orders = jax.jit(jax.vmap(lambda key: permutation(key, 512)))(keys)
    part = np.argsort(orders, axis=1) // 128
    for i, j in ((0, 1), (0, 511), (255, 256), (300, 17)):
        share = (part[:, i] == part[:, j]).mean()
        assert abs(share - 127 / 511) < 4 * (0.25 * 0.75 / 2000) ** 0.5

"""Counts against Python's whole numbers."""

import chex
import jax.numpy as jnp
import numpy as np

from ppo_jax.arrays.counting import MOST, add

COUNTS = np.array([0, 1, 7, 2**24 + 1, MOST - 3, MOST - 1, MOST])
MORE = np.array([0, 1, 2, 3, 4, 10**6, MOST])


def test_a_count_stops_at_the_largest_number(variant):
    """And never wraps, whatever is added."""
    counts, more = np.meshgrid(COUNTS, MORE)
    want = [min(a + b, 2**31 - 1) for a, b in zip(counts.flat, more.flat, strict=True)]
    got = variant(add)(jnp.int32(counts), jnp.int32(more))
    chex.assert_type(got, jnp.int32)
    chex.assert_trees_all_equal(got, np.reshape(want, counts.shape).astype(np.int32))


def test_one_more_is_what_a_count_is_for():
    chex.assert_trees_all_equal(add(jnp.int32([3, MOST])), jnp.int32([4, MOST]))

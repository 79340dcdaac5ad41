"""What leaves are together, against NumPy."""

import chex
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from ppo_jax.transforms.leaves import extrema, flat, norm

RANDOM = np.random.default_rng(0)
TREES = {
    "matrix and scalar": {"kernel": RANDOM.normal(size=(3, 4)), "bias": -2.5},
    "all below 0": [-1 - RANDOM.random(5), np.array([-7.0, -0.5])],
    "all above 0": ({"a": 3 + RANDOM.random((2, 1, 2))}, np.array(9.0)),
    "one number": np.array(-0.25),
}


def as_float32(tree):
    return jax.tree.map(lambda x: jnp.asarray(x, jnp.float32), tree)


def numbers(tree):
    """All numbers in float64; keys of a dictionary are in alphabetical order."""
    return np.concatenate([np.ravel(np.float64(x)) for x in jax.tree.leaves(tree)])


@pytest.mark.parametrize("name", TREES)
def test_leaves_together_are_one_array(name, variant):
    tree = TREES[name]
    x = numbers(tree)
    together = variant(lambda t: (flat(t), extrema(t), norm(t)))(as_float32(tree))
    expected = (x, (x.min(), x.max()), np.sqrt((x**2).sum()))
    chex.assert_trees_all_close(together, expected, rtol=1e-6)


@pytest.mark.parametrize(
    "empty", [(), {}, {"a": [], "b": None}, np.zeros((0, 3), np.float32)]
)
def test_a_tree_without_numbers_is_a_zero(empty):
    found = jax.jit(lambda: (flat(empty), extrema(empty), norm(empty)))()
    chex.assert_trees_all_equal(found, (jnp.zeros(1), (0.0, 0.0), 0.0))


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_what_is_not_finite_is_not_hidden(bad, variant):
    """By no leaf after it."""
    tree = as_float32({"a": [1.0, bad], "b": [2.0, -3.0]})
    low, high = variant(extrema)(tree)
    assert not np.isfinite(high) and not np.isfinite(variant(norm)(tree))
    assert np.isnan(low) == np.isnan(bad)

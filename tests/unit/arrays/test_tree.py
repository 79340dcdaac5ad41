"""Operations on every leaf, keys and integers included."""

import chex
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from ppo_jax.arrays import tree


def example(rows, key):
    """One leaf of each kind, with `rows` rows."""
    size = 1.0 * jnp.arange(rows * 6)
    return {
        "float": size.reshape(rows, 3, 2),
        "int": jnp.arange(rows),
        "key": jax.random.split(key, rows),
        "none": None,
    }


@pytest.mark.parametrize("mask", [[True, False, True], [False] * 3, [True] * 3])
def test_where_selects_rows_of_every_leaf(key, mask):
    a, b = example(3, key), example(3, jax.random.key(7))
    b = {**b, "float": -b["float"], "int": -b["int"]}
    out = jax.jit(tree.where)(jnp.array(mask), a, b)
    for row, chosen in enumerate(mask):
        rows = [jax.tree.map(lambda x, row=row: x[row], side) for side in (out, a, b)]
        chex.assert_trees_all_equal(rows[0], rows[1] if chosen else rows[2])


def test_where_with_one_mask_for_all(key):
    a, b = example(2, key), example(2, jax.random.key(7))
    chex.assert_trees_all_equal(tree.where(jnp.array(True), a, b), a)
    chex.assert_trees_all_equal(tree.where(jnp.array(False), a, b), b)


def test_where_takes_numbers_and_stops_nan():
    out = tree.where(jnp.array([True, False]), {"a": 1.0}, {"a": jnp.full(2, jnp.nan)})
    assert float(out["a"][0]) == 1.0
    assert np.isnan(out["a"][1])


def test_take(key):
    a = example(4, key)
    rows = jax.tree.map(lambda x: jnp.stack([x[2], x[0], x[2]]), a)
    chex.assert_trees_all_equal(tree.take(a, jnp.array([2, 0, 2])), rows)


def test_merge_leading_keeps_the_order(key):
    a = example(6, key)
    split = jax.tree.map(lambda x: x.reshape(2, 3, *x.shape[1:]), a)
    chex.assert_trees_all_equal(tree.merge_leading(split), a)
    chex.assert_shape(tree.merge_leading(jnp.zeros((2, 3, 4, 5)), count=3), (24, 5))
    chex.assert_shape(tree.merge_leading(jnp.zeros((2, 3, 0))), (6, 0))


@pytest.mark.parametrize("bad", [jnp.nan, jnp.inf, -jnp.inf])
def test_all_finite_finds_the_row(key, bad):
    a = example(3, key)
    assert tree.all_finite(a)
    a["float"] = a["float"].at[1, 2, 0].set(bad)
    assert not tree.all_finite(a)
    assert tree.all_finite(a, batch_axes=1).tolist() == [True, False, True]
    per_entry = tree.all_finite({"float": a["float"]}, batch_axes=2)
    assert np.argwhere(~np.asarray(per_entry)).tolist() == [[1, 2]]


def test_all_finite_of_no_floats():
    assert tree.all_finite({"int": jnp.arange(3)})
    assert tree.all_finite(())


def test_require_finite_sees_only_what_is_known():
    tree.require_finite(a={"x": jnp.ones(2), "y": jnp.arange(2)}, b=1.0)
    bad = np.array([1.0, np.nan])
    with pytest.raises(ValueError, match="b: expected finite numbers"):
        tree.require_finite(a=jnp.ones(2), b={"x": bad})

    @jax.jit
    def traced(x):
        tree.require_finite(x=x)
        with pytest.raises(ValueError, match="constant: expected finite"):
            tree.require_finite(constant=bad)
        return x

    assert np.isnan(traced(bad)[1])

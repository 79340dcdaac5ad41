"""Few arrays are saved, and every leaf is what it was."""

import chex
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from ppo_jax.host.run_dir import bundles
from ppo_jax.host.run_dir.checkpoint import Checkpointer

LARGE = bundles.MOST // 4
TREE = {
    "params": (jnp.array([[1.5, -2.0]]), jnp.array([0.1, -1.0], jnp.bfloat16)),
    "flags": jnp.array([True, False, True]),
    "count": jnp.int32(-7),
    "one": jnp.float32(3.25),
    "of_numpy": np.array([4.5, 0.5], np.float32),
    "nothing": (jnp.zeros((0, 2)), jnp.zeros(0, jnp.int8)),
    "large": jnp.arange(LARGE, dtype=jnp.float32).reshape(2, -1),
    "keys": jax.random.split(jax.random.key(5), 3),
}


def numbers(tree):
    """Keys as numbers, with what they are of."""

    def of(leaf):
        if not jnp.issubdtype(leaf.dtype, jax.dtypes.prng_key):
            return leaf
        return {str(jax.random.key_impl(leaf)): jax.random.key_data(leaf)}

    return jax.tree.map(of, tree)


def test_small_leaves_are_one_array_per_type_in_their_order():
    together = bundles.planned(TREE)
    assert together == {
        "float32": ["of_numpy", "one", "params.0"],
        "bfloat16": ["params.1"],
        "bool": ["flags"],
        "int32": ["count"],
        "uint32": ["keys"],
    }
    saved = bundles.saved(TREE, together)
    assert saved["together"]["float32"].tolist() == [4.5, 0.5, 3.25, 1.5, -2.0]
    assert saved["together"]["bool"].tolist() == [True, False, True]
    assert saved["together"]["uint32"].shape == (6,)
    assert sorted(saved["apart"]) == ["large"]


def test_what_is_together_is_no_view_of_what_may_be_given_away():
    leaf = jnp.ones(3)
    part = bundles.saved({"a": leaf}, {"float32": ["a"]})["together"]["float32"]
    assert not np.shares_memory(part, np.asarray(leaf))


def test_a_checkpoint_gives_back_every_leaf(tmp_path):
    """Numbers, types, shapes and keys, where another tree has others."""
    checkpoints = Checkpointer(tmp_path)
    checkpoints.save(1, TREE, 0.0, {})
    _, found, _ = checkpoints.restore(jax.tree.map(jnp.zeros_like, TREE))
    checkpoints.close()
    chex.assert_trees_all_equal(numbers(found), numbers(TREE))
    chex.assert_trees_all_equal_shapes_and_dtypes(numbers(found), numbers(TREE))


@pytest.mark.parametrize("impl", ["rbg", "threefry2x32"])
def test_keys_stay_of_their_kind(impl):
    tree = {"key": jax.random.key(1, impl=impl)}
    together = bundles.planned(tree)
    found = bundles.restored(bundles.saved(tree, together), tree, together)
    assert jax.random.key_impl(found["key"]) == jax.random.key_impl(tree["key"])
    chex.assert_trees_all_equal(numbers(found), numbers(tree))

"""Trees kept together are the trees that they were."""

import chex
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from ppo_jax.arrays.packing import SMALL, pack, pack_like, unpack, word

TREE = {
    "flag": np.array([[True, False, True]] * 2),
    "image": np.arange(24, dtype=np.uint8).reshape(2, 3, 4),
    "mean": (np.arange(12.0, dtype=np.float32).reshape(2, 3, 2), ()),
    "none": np.zeros((2, 3, 0), np.float32),
    "scalar": np.full((2, 3), 7.0, np.float32),
    "step": np.arange(6, dtype=np.int32).reshape(2, 3),
}
"""Leaves `[2, 3, ...]` of four dtypes."""


@pytest.mark.parametrize("leading", [0, 1, 2])
def test_nothing_is_lost(variant, leading):
    packed = variant(lambda tree: pack(tree, leading))(TREE)
    assert len(packed.parts) == 4
    if leading:
        assert {part.shape[:leading] for part in packed.parts} == {(2, 3)[:leading]}
    chex.assert_trees_all_equal(packed.unpack(), TREE)
    chex.assert_trees_all_equal_dtypes(packed.unpack(), TREE)


def test_keys_and_what_is_large_stay_alone(variant):
    keys = jax.random.key_data(jax.random.split(jax.random.key(0), 6)).reshape(2, 3, 2)

    def packed(tree, keys):
        tree = tree | {"key": jax.random.wrap_key_data(keys)}
        return pack(tree, leading=2, most=12)

    def there_and_back(tree, keys):
        tree = packed(tree, keys).unpack()
        return tree | {"key": jax.random.key_data(tree["key"])}

    parts = jax.eval_shape(packed, TREE, keys)
    assert [leaf.shape for leaf in parts.alone] == [(2, 3, 4), (2, 3), (2, 3, 0)]
    assert sum(part.size for part in parts.parts) == 6 * (1 + 2 + 1 + 1)
    back = variant(there_and_back)(TREE, np.asarray(keys))
    chex.assert_trees_all_equal(back, TREE | {"key": keys})


def test_as_words_every_bit_is_kept(variant):
    """Of zeros with a sign, and of what is not finite; what has no word stays so."""
    numbers = np.array([[-0.0, np.inf, 1e-45], [np.nan, -np.inf, 0.1]], np.float32)
    numbers[1, 0] = np.int32(0x7F800001).view(np.float32)  # A NaN of one's own.
    tree = TREE | {"numbers": numbers, "seed": np.uint32([[7, 2**32 - 1, 0]] * 2)}
    packed = variant(lambda tree: pack(tree, leading=1, kept_as=word))(tree)
    assert [str(part.dtype) for part in packed.parts] == ["uint32", "uint8"]
    chex.assert_trees_all_equal_dtypes(packed.unpack(), tree)
    bits = jax.tree.map(lambda x: np.asarray(x).view(np.uint8), (packed.unpack(), tree))
    chex.assert_trees_all_equal(*bits)


def test_many_flags_are_no_words():
    """They would take four times as much memory."""
    flags = np.ones((2, SMALL["default"] // 2 + 1), bool)
    assert [str(word(x)) for x in (flags, flags[:, 1:])] == ["bool", "uint32"]


def test_sums_of_flags_are_counts():
    """Functions of leading axes may change the type of what is packed as it is."""
    sums = jax.tree.map(lambda x: x.sum(axis=0), pack(TREE, leading=1)).unpack()
    np.testing.assert_array_equal(sums["flag"], [2, 0, 2])


def test_leading_axes_are_those_of_the_leaves():
    """Mapped, scanned and summed as the tree would be."""
    packed = pack(TREE, leading=2)
    first = jax.tree.map(lambda x: x[0], packed)
    chex.assert_trees_all_equal(first.unpack(), jax.tree.map(lambda x: x[0], TREE))
    _, scanned = jax.lax.scan(
        lambda _, tree: (None, pack(tree, leading=1)),
        None,
        jax.tree.map(jnp.array, TREE),
    )
    chex.assert_trees_all_equal(scanned, packed)
    np.testing.assert_array_equal(packed["scalar"], TREE["scalar"])


def test_a_tree_without_leaves_is_packed_into_nothing():
    assert pack({"a": ()}).parts == ()
    assert pack({"a": ()}).unpack() == {"a": ()}


def test_only_what_is_like_an_example_is_packed():
    """A state of an optimiser: counts stay, moments are arrays."""
    params = {"bias": jnp.ones(2), "kernel": jnp.ones((2, 2))}
    state = (jnp.int32(3), (params, {"bias": jnp.ones(2)}), params)
    count, (moment, other), again = pack_like(state, params)
    assert moment.parts[0].shape == again.parts[0].shape == (6,)
    assert count is state[0]
    assert other.keys() == {"bias"}
    chex.assert_trees_all_equal(unpack((count, (moment, other), again)), state)

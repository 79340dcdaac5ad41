import chex
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from ppo_jax.ppo.keys import fused, plain

DRAWS = {
    "split": lambda key: jax.random.key_data(jax.random.split(key, (3, 5))),
    "fold_in": lambda key: jax.random.key_data(jax.random.fold_in(key, 2**31 + 7)),
    "bits8": lambda key: jax.random.bits(key, (4, 3), jnp.uint8),
    "bits16": lambda key: jax.random.bits(key, 5, jnp.uint16),
    "bits32": lambda key: jax.random.bits(key, (2, 3, 4)),
    "scalar": lambda key: jax.random.uniform(key),
    "none": lambda key: jax.random.normal(key, (0, 3)),
    "normal": lambda key: jax.random.normal(key, 7),
    "randint": lambda key: jax.random.randint(key, 9, -4, 1000),
    "permutation": lambda key: jax.random.permutation(key, 50),
    "categorical": lambda key: jax.random.categorical(key, jnp.zeros((4, 3))),
    "gamma": lambda key: jax.random.gamma(key, 2.0, (3,)),
}


@pytest.mark.parametrize("draw", DRAWS.values(), ids=DRAWS)
@pytest.mark.parametrize("seed", [0, 7, 2**32 - 1])
def test_numbers_are_those_of_jax(draw, seed):
    """Whatever is drawn, of one key and of several."""
    key = jax.random.key(seed)
    chex.assert_trees_all_equal(draw(fused(key)), draw(key))
    keys = jax.random.split(key, 4)
    each = jax.jit(jax.vmap(draw))
    chex.assert_trees_all_equal(each(fused(keys)), each(keys))


def test_a_known_answer():
    """Threefry-2x32 with 20 rounds of zeros, as in the vectors of Random123."""
    key = jax.random.wrap_key_data(jnp.zeros(2, jnp.uint32))
    got = jax.random.key_data(jax.random.fold_in(fused(key), 0))
    expected = np.array([0x6B200159, 0x99BA4EFE], np.uint32)
    chex.assert_trees_all_equal(np.asarray(got), expected)


def test_only_keys_of_the_default_kind_change():
    """And all of them, wherever they are; back again they are what they were."""
    tree = {
        "keys": jax.random.split(jax.random.key(1), 3),
        "other": jax.random.key(1, impl="rbg"),
        "raw": jax.random.PRNGKey(1),
        "number": 2.0,
        "array": jnp.arange(3),
    }
    inside = fused(tree)
    assert inside["keys"].dtype != tree["keys"].dtype
    for name in ("other", "raw", "number", "array"):
        assert inside[name] is tree[name]
    again = plain(inside)
    assert again["keys"].dtype == tree["keys"].dtype
    chex.assert_trees_all_equal(
        jax.random.key_data(again["keys"]), jax.random.key_data(tree["keys"])
    )


def test_no_loop_is_left():
    """What takes the time on a CPU: five rounds of kernels for a few numbers."""

    def draw(key):
        return jax.random.uniform(key, (4,))

    def loops(key):
        return jax.jit(draw).lower(key).compile().as_text().count(" while(")

    key = jax.random.key(0)
    assert loops(fused(key)) == 0 < loops(key)


def test_generators_of_other_settings_are_left_alone():
    with jax.threefry_partitionable(False):
        key = jax.random.key(3)
        assert fused(key).dtype == key.dtype

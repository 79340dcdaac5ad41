"""The scalar critic's loss and its clipping, against hand-worked numbers."""

import chex
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from ppo_jax.losses import clip_around, squared_error


def test_squared_error_by_hand(variant):
    value = jnp.array([[1.0, -2.0], [0.0, 3.0]])
    target = jnp.array([[4.0, 2.0], [0.0, 3.0]])
    got = variant(squared_error)(value, target)
    chex.assert_trees_all_equal(got, np.array([[4.5, 8.0], [0, 0]]))


def test_squared_error_pulls_the_value_and_never_the_target():
    value, target = np.float32([[1.0, -2.0], [4.0, -3.0]])
    gradient = jax.grad(lambda v, y: squared_error(v, y).sum(), argnums=(0, 1))
    for_value, for_target = jax.jit(gradient)(value, target)
    chex.assert_trees_all_equal(for_value, np.array([-3.0, 1.0]))
    chex.assert_trees_all_equal(for_target, 0.0)


@pytest.mark.parametrize("function", [squared_error, lambda v, o: clip_around(v, o, 1)])
def test_shapes_must_agree(function):
    """The classic `[B, 1]` against `[B]`."""
    with pytest.raises(ValueError, match=r"(target|old): .* that of value, got"):
        function(jnp.zeros((4, 1)), jnp.zeros(4))


def test_results_are_float32():
    half = jnp.ones(2, jnp.bfloat16)
    for result in (
        jax.eval_shape(squared_error, half, np.ones(2, np.float32)),
        jax.eval_shape(clip_around, half, half, 0.5),
    ):
        chex.assert_type(result, jnp.float32)


def test_clip_around_by_hand(variant):
    """R-E2: predictions are clipped, to old ± ε."""
    value, old = jnp.array([0.0, 1.2, -3.0, 9.0]), jnp.array([0.0, 1.0, 1.0, 1.0])
    got = variant(clip_around)(value, old, 0.5)
    chex.assert_trees_all_close(got, np.array([0.0, 1.2, 0.5, 1.5]), rtol=1e-6)


def test_clip_around_is_exact_inside_and_for_huge_ranges():
    """PROP-12.2: new = old, or ε → ∞, changes no bit."""
    value = jnp.asarray(np.random.default_rng(0).normal(size=100) * 1e3, jnp.float32)
    chex.assert_trees_all_equal(clip_around(value, value, 0.1), value)
    chex.assert_trees_all_equal(clip_around(value, -value, jnp.inf), value)


def test_clip_around_stops_the_gradient_of_what_it_moved():
    """PROP-12.9."""
    old = jnp.zeros(3)
    gradient = jax.jit(jax.grad(lambda v, eps: clip_around(v, old, eps).sum()))
    got = gradient(jnp.array([0.2, 0.8, -0.8]), 0.5)
    chex.assert_trees_all_equal(got, np.array([1.0, 0.0, 0.0]))


def test_a_range_is_one_number():
    with pytest.raises(ValueError, match=r"eps: expected a number, got float32"):
        clip_around(jnp.zeros(3), jnp.zeros(3), jnp.ones(3))

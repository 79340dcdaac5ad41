import chex
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import export

from ppo_jax.arrays.calls import apart


def _mean_and_spread(x, weights):
    """With functions inside that are jitted themselves."""
    mean = jnp.sum(x * weights) / jnp.sum(weights)
    return {"mean": mean, "spread": jnp.where(weights > 0, jnp.abs(x - mean), 0.0)}


X = np.array([1.0, 5.0, 3.0], np.float32)
WEIGHTS = np.array([1.0, 1.0, 2.0], np.float32)


def test_results_are_the_same(variant):
    got = variant(apart(_mean_and_spread))(X, WEIGHTS)
    chex.assert_trees_all_close(got["mean"], np.float32(3.0))
    chex.assert_trees_all_close(got["spread"], np.array([2.0, 2.0, 0.0], np.float32))


def test_gradients_are_the_same():
    square = apart(lambda x: jnp.sum(x**2))
    chex.assert_trees_all_close(jax.jit(jax.grad(square))(X), 2 * X)


def test_a_cpu_calls_it():
    """It alone: what it calls is not called any more."""

    def calls(function):
        text = jax.jit(function).lower(X, WEIGHTS).compile().as_text()
        return text.count(" call(")

    assert calls(apart(_mean_and_spread)) == 1
    assert calls(_mean_and_spread) == 0


@pytest.mark.parametrize(
    ("platform", "told"), [("cpu", True), ("cuda", False), ("tpu", False)]
)
def test_other_platforms_are_told_nothing(platform, told):
    function = jax.jit(apart(_mean_and_spread))
    exported = export.export(function, platforms=[platform])(X, WEIGHTS)
    assert ("inlineable" in exported.mlir_module()) == told

"""Products with weights, in NumPy."""

import chex
import jax
import jax.numpy as jnp
import numpy as np

from ppo_jax.arrays.weights import weighted

WEIGHT = jnp.array([0.0, 0.0, 0.0, 2.0, 1.0, jnp.nan])
X = jnp.array([jnp.nan, jnp.inf, 3.0, -1.5, jnp.inf, 1.0])


def test_a_weight_of_0_stops_everything(variant):
    """And nothing else does."""
    want = np.float32([0.0, 0.0, 0.0, -3.0, jnp.inf, jnp.nan])
    chex.assert_trees_all_equal(variant(weighted)(WEIGHT, X), want)


def test_no_gradient_passes_a_weight_of_0():
    slope = jax.grad(lambda x: jnp.sum(weighted(WEIGHT[:4], x)))(X[:4])
    assert slope.tolist() == [0.0, 0.0, 0.0, 2.0]

"""Products of rows with a kernel."""

import chex
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from ppo_jax.networks.products import kernel_gradient, product


def drawn(*shape):
    return np.random.default_rng(sum(shape)).normal(size=shape)


@pytest.mark.parametrize(
    ("rows", "features", "outputs", "atol"),
    [(5, 3, 4, 0.0), (1, 2, 1, 0.0), (64, 16, 4, 1e-5)],  # Long sums may cancel out.
)
def test_gradients_are_those_of_a_product(rows, features, outputs, atol, variant):
    """∂L/∂X = G Kᵀ and ∂L/∂K = Xᵀ G, in float64 by hand."""
    x, kernel = drawn(rows, features), drawn(features, outputs)
    upstream = drawn(rows, outputs)

    def pulled_back(x, kernel, upstream):
        out, pull_back = jax.vjp(product, x, kernel)
        return out, *pull_back(upstream)

    got = variant(pulled_back)(*map(np.float32, (x, kernel, upstream)))
    expected = (x @ kernel, upstream @ kernel.T, x.T @ upstream)
    expected = tuple(map(np.float32, expected))
    chex.assert_trees_all_close(got, expected, rtol=1e-5, atol=atol)


@pytest.mark.parametrize(
    ("rows", "dtype", "calls"),
    [(4, np.float32, 0), (64, np.float32, 1), (4, jnp.bfloat16, 1)],
)
def test_few_rows_are_multiplied_without_a_call(rows, dtype, calls):
    """But short numbers, which would be rounded before they are added."""
    x, kernel = (drawn(*shape).astype(dtype) for shape in ((rows, 4), (4, 64)))
    assert jax.jit(product).lower(x, kernel).as_text().count("dot_general") == calls


@pytest.mark.parametrize("precision", [None, jax.lax.Precision.HIGHEST])
def test_a_gpu_acts_as_it_learns(precision):
    """Few rows are a product like many, and gradients are as precise."""
    x, kernel = (np.float32(drawn(*shape)) for shape in ((4, 4), (4, 64)))

    def pulled_back(x, kernel):
        out, pull_back = jax.vjp(lambda *pair: product(*pair, precision), x, kernel)
        return out, *pull_back(out)

    traced = jax.jit(pulled_back).trace(x, kernel)
    text = traced.lower(lowering_platforms=("cuda",)).as_text()
    assert text.count("dot_general") == 3
    assert text.count("[HIGHEST, HIGHEST]") == (3 if precision else 0)


def test_members_have_gradients_of_their_own():
    rows, upstream = drawn(3, 7, 2), drawn(3, 7, 4)
    got = jax.jit(jax.vmap(kernel_gradient))(np.float32(rows), np.float32(upstream))
    expected = np.einsum("prn,prm->pnm", rows, upstream)
    chex.assert_trees_all_close(got, np.float32(expected), rtol=1e-5)

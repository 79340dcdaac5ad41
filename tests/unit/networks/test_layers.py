"""Layers as they are made, and what they compute, by hand in float64."""

import re

import chex
import flax.linen as nn
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from built import build
from flax.errors import ScopeParamShapeError
from jax._src import test_util as jtu
from tabular import as_float64

from ppo_jax import networks
from ppo_jax.networks.layers import Layers, convolved, orthogonal


def test_members_never_share_a_batched_factorisation():
    """On a CPU, jax 0.10's batched LAPACK calls wait for threads that they hold."""
    network = build(memory=networks.Gru(4), critic_hidden=(8,))
    keys = jax.random.split(jax.random.key(0), 3)
    lowered = jax.jit(jax.vmap(network.init)).lower(keys)
    pattern = r"@lapack_sgeqrf_ffi.*: \(tensor<([0-9x]+)xf32>"
    calls = re.findall(pattern, lowered.as_text())
    assert calls and all(shape.count("x") == 1 for shape in calls), calls
    together = jax.device_get(lowered.compile()(keys))
    alone = jax.jit(network.init)(keys[1])
    chex.assert_trees_all_equal(jax.tree.map(lambda x: x[1], together), alone)


@pytest.mark.parametrize("shape", [(3, 7), (7, 3), (4, 4)])
def test_matrices_are_orthogonal_and_scaled(shape):
    """The smaller side is orthonormal, times the scale; members draw their own."""
    keys = jax.random.split(jax.random.key(0), 3)
    draw = jax.jit(jax.vmap(lambda key: orthogonal(0.5)(key, shape)))
    matrices = np.asarray(draw(keys), np.float64)
    for matrix in matrices:
        small = matrix if shape[0] <= shape[1] else matrix.T
        gram = small @ small.T
        chex.assert_trees_all_close(gram, 0.25 * np.eye(len(gram)), rtol=0, atol=1e-6)
    assert (matrices[0] != matrices[1]).any()


def test_outside_of_programs_a_shape_is_compiled_once():
    """Also for several keys; a program draws the same matrices."""

    def draw(key):
        return orthogonal(0.5)(key, (5, 3))

    keys, many = jax.random.split(jax.random.key(0), 4), jax.vmap(draw)
    alone, each = draw(keys[1]), many(keys)
    chex.assert_trees_all_close(each[1], alone, rtol=1e-6)
    chex.assert_trees_all_close(jax.jit(many)(keys), each, rtol=1e-6)
    another, turned = keys[2], keys[::-1]
    with jtu.count_jit_compilation_cache_miss() as count:
        draw(another), many(turned)
    assert count() == 0


def drawn(module, *shape):
    """Parameters of a module, and what it is given, as NumPy draws them."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=shape).astype(np.float32)
    shapes = jax.eval_shape(module.init, jax.random.key(0), x)["params"]
    return jax.tree.map(lambda p: np.float32(0.3 * rng.normal(size=p.shape)), shapes), x


def test_dense_layers_by_hand(variant):
    """An activation after each, the last one included; in float64."""
    layers = Layers((4, 2), "elu")
    params, x = drawn(layers, 5, 3)
    assert jax.tree.map(jnp.shape, params) == {
        "Dense_0": {"kernel": (3, 4), "bias": (4,)},
        "Dense_1": {"kernel": (4, 2), "bias": (2,)},
    }
    want = np.asarray(x, np.float64)
    for name in ("Dense_0", "Dense_1"):
        layer = as_float64(params[name])
        want = want @ layer["kernel"] + layer["bias"]
        want = np.where(want > 0, want, np.expm1(want))
    got = variant(lambda params, x: layers.apply({"params": params}, x))(params, x)
    chex.assert_type(got, jnp.float32)
    chex.assert_trees_all_close(got, want, rtol=1e-5, atol=1e-6)


def test_weights_of_another_shape_are_told():
    """As flax tells it of its own layers."""
    layers = Layers((4,), "tanh")
    params, _ = drawn(layers, 5, 3)
    with pytest.raises(ScopeParamShapeError, match=r'"kernel" in "/Dense_0".*\(2, 4\)'):
        layers.apply({"params": params}, jnp.ones((5, 2)))


class Convolved(nn.Module):
    """Two layers of convolutions, without an activation that hides anything."""

    @nn.compact
    def __call__(self, x):
        return convolved(x, (3, 2), "leaky_relu")


def test_convolutions_by_hand():
    """Every 3×3 window times every kernel; each layer takes 2 off height and width."""
    params, x = drawn(Convolved(), 2, 3, 6, 7, 2)
    got = jax.jit(Convolved().apply)({"params": params}, x)
    chex.assert_shape(got, (2, 3, 2, 3, 2))
    want = np.asarray(x, np.float64)
    for name in ("Conv_0", "Conv_1"):
        windows = np.lib.stride_tricks.sliding_window_view(want, (3, 3), (2, 3))
        layer = as_float64(params[name])
        want = np.einsum("tbhwfij,ijfo->tbhwo", windows, layer["kernel"])
        want = want + layer["bias"]
        want = np.where(want > 0, want, 0.01 * want)
    chex.assert_trees_all_close(got, want, rtol=1e-4, atol=1e-5)

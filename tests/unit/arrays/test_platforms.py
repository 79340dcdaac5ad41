"""A mesh says which way of computing a value is traced."""

import re

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.sharding import AbstractDevice, AbstractMesh, Mesh
from jax.sharding import PartitionSpec as Axes

from ppo_jax.arrays.packing import pack_rows, pack_small
from ppo_jax.arrays.platforms import by_platform, chosen

X = np.array([0.5, 1.0], np.float32)
H100 = AbstractDevice("NVIDIA H100", 132, "gpu")
MESHES = {
    "cpu": Mesh(jax.local_devices()[:1], "x"),
    "gpu": AbstractMesh((1,), ("x",), abstract_device=H100),
}


def either(x):
    return by_platform(x, cpu=jnp.sin, default=jnp.cos)


def under(mesh):
    return jax.shard_map(either, mesh=mesh, in_specs=Axes(), out_specs=Axes())


def ways(function):
    text = str(jax.make_jaxpr(function)(X))
    return {name for name in ("sin", "cos") if f"{name} " in text}


@pytest.mark.parametrize("platform, way", [("cpu", "sin"), ("gpu", "cos")])
def test_one_way_is_traced_for_the_devices_of_a_mesh(platform, way):
    assert ways(under(MESHES[platform])) == {way}


def test_both_are_without_a_mesh_and_one_is_compiled():
    assert ways(either) == {"sin", "cos"}
    np.testing.assert_allclose(jax.jit(either)(X), np.sin(X), rtol=1e-6)


@pytest.mark.parametrize("platform, way", [("cpu", "sine"), ("cuda", "cosine")])
def test_exports_have_the_way_of_their_platform(platform, way):
    text = jax.export.export(jax.jit(either), platforms=[platform])(X).mlir_module()
    assert set(re.findall(r"stablehlo\.(\w*sine)", text)) == {way}


def test_a_program_of_a_mesh_computes_in_its_way():
    result = jax.jit(under(MESHES["cpu"]))(X)
    np.testing.assert_allclose(result, np.sin(X), rtol=1e-6)


def times(x):
    return x * chosen(cpu=2.0, default=3.0)


@pytest.mark.parametrize("platform, factor", [("cpu", "2.0"), ("gpu", "3.0")])
def test_a_constant_is_that_of_the_devices_of_a_mesh(platform, factor):
    mapped = jax.shard_map(
        times, mesh=MESHES[platform], in_specs=Axes(), out_specs=Axes()
    )
    assert re.search(rf"= mul \w+ {factor}:", str(jax.make_jaxpr(mapped)(X)))


def test_a_constant_without_a_mesh_is_that_of_a_cpu():
    """A program does not ask where it is made."""
    np.testing.assert_array_equal(times(X), 2 * X)


@pytest.mark.parametrize("platform, alone, types", [("cpu", 2, 2), ("gpu", 1, 1)])
def test_what_is_small_for_a_gpu_is_more(platform, alone, types):
    """A kernel costs it more than thousands of numbers do, and than a conversion."""
    tree = {
        "few": X,
        "flag": np.ones(2, bool),
        "more": np.zeros((2, 512)),
        "image": np.zeros((2, 4096)),
    }
    found = []

    def packed(tree):
        small = pack_small(tree)
        found.append((len(small.alone), len(small.parts), len(pack_rows(tree).parts)))
        return tree

    mapped = jax.shard_map(
        packed, mesh=MESHES[platform], in_specs=Axes(), out_specs=Axes()
    )
    jax.eval_shape(mapped, tree)
    assert found == [(alone, types, types)]

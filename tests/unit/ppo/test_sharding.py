"""Shares of devices: a matter of where, never of what."""

import json

import chex
import jax
import jax.numpy as jnp
from runs import ENVIRONMENT, python

from ppo_jax.ppo.sharding import shared

CODE = """
import json
import jax
import jax.numpy as jnp
from jax.sharding import AxisType
from ppo_jax.ppo.sharding import ENVS, shared

x, y = jnp.arange(24.0).reshape(6, 4), jnp.arange(5.0)
mesh = jax.make_mesh((2,), (ENVS,), axis_types=(AxisType.Auto,))
with jax.set_mesh(mesh):
    out = {axis: jax.jit(lambda t: shared(t, axis))((x, y)) for axis in (0,)}
    x_other = jax.jit(lambda x: shared(x, axis=1))(x)
shapes = [sorted(s.data.shape for s in a.addressable_shards) for a in out[0]]
other = sorted(s.data.shape for s in x_other.addressable_shards)
same = bool((out[0][0] == x).all() & (out[0][1] == y).all() & (x_other == x).all())
print(json.dumps([shapes, other, same]))
"""


def test_without_devices_to_share_nothing_happens():
    tree = {"a": jnp.arange(6.0).reshape(3, 2), "b": jnp.arange(4)}
    assert shared(tree)["a"] is tree["a"]
    chex.assert_trees_all_equal(jax.jit(shared)(tree), tree)


def test_each_device_holds_a_share_if_shares_are_equal():
    """Six rows of two devices; five of a leaf are whole on both."""
    said = python(CODE, ENVIRONMENT | {"JAX_NUM_CPU_DEVICES": "2"})
    (rows, odd), columns, same = json.loads(said)
    assert same
    assert rows == [[3, 4], [3, 4]] and columns == [[6, 2], [6, 2]]
    assert odd == [[5], [5]]

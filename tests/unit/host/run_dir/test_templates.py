"""Trees that checkpoints are read into, and compared with."""

from typing import NamedTuple

import chex
import jax
import jax.numpy as jnp
import numpy as np

from ppo_jax.host.run_dir import templates


class Counted(NamedTuple):
    count: int


Counted.VERSION = 2


def made():
    return {"x": jnp.ones((2, 3)), "keys": jax.random.split(jax.random.key(3), 2)}


def test_a_blank_has_the_leaves_without_their_numbers():
    found = templates.blank(jax.eval_shape(made))
    assert templates.leaves(found) == templates.leaves(made())
    chex.assert_trees_all_equal(found["x"], np.zeros((2, 3), np.float32))
    assert not jax.random.key_data(found["keys"]).any()


def test_a_blank_lies_where_its_shapes_do():
    place = jax.sharding.SingleDeviceSharding(jax.devices()[0])
    shapes = jax.tree.map(
        lambda x: jax.ShapeDtypeStruct(x.shape, x.dtype, sharding=place), made()
    )
    found = templates.blank(shapes)
    assert templates.leaves(found) == templates.leaves(made())
    assert all(leaf.sharding == place for leaf in jax.tree.leaves(found))
    assert isinstance(found["x"], jax.ShapeDtypeStruct)  # Which takes no memory there.


def test_statistics_begin_anew_by_their_kind():
    old, fresh = ({"a": Counted(n), "b": n} for n in (1, 0))
    assert templates.anew(old, fresh, {"Counted"}) == {"a": Counted(0), "b": 1}
    assert templates.anew(old, fresh, {"Other"}) == old


def test_differences_name_what_is_absent():
    saved, wanted = {"x": "float32[2]"}, {"y": "int32[]"}
    assert templates.differences(saved, wanted) == [
        "x: float32[2] -> absent",
        "y: absent -> int32[]",
    ]
    assert templates.differences(saved, saved) == []

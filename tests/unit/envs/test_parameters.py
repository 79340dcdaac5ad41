"""Parameters of environments that somebody else wrote."""

import pickle

import jax
import pytest

from ppo_jax.component import numbers
from ppo_jax.envs import parameters

TYPES = {"gravity": float, "limit": int, "map": tuple}


def test_floats_are_numbers_and_all_else_is_structure():
    moon = parameters.kind("Moon", TYPES)(gravity=1.62, limit=9)
    assert jax.tree.leaves(moon) == [1.62]
    assert parameters.given(moon) == {"gravity": 1.62, "limit": 9}
    assert parameters.given({"limit": None, "gravity": 2.0}) == {"gravity": 2.0}


def test_parameters_of_the_same_names_are_the_same_value():
    moon = parameters.kind("Moon", TYPES)(gravity=1.62)
    assert parameters.kind("Moon", dict(TYPES))(gravity=1.62) == moon
    assert pickle.loads(pickle.dumps(moon)) == moon
    assert parameters.kind("Mars", TYPES)(gravity=1.62) != moon


GROUPED = {"limit": int, "reward": {"scales": {"energy": float}, "sigma": float}}


def test_parameters_may_be_in_groups():
    kind = parameters.kind("Robot", GROUPED)
    robot = kind(reward={"scales": {"energy": 2}})
    assert numbers(robot) == {"reward.scales.energy": 2.0}
    assert parameters.given(robot) == {"reward": {"scales": {"energy": 2.0}}}
    assert kind(**parameters.given(robot)) == pickle.loads(pickle.dumps(robot)) == robot
    assert parameters.given(kind()) == {} and hash(kind()) == hash(kind())
    assert eval(repr(robot)) == parameters.given(robot)


def test_what_a_group_has_not_is_an_error():
    with pytest.raises(TypeError, match="the closest is 'energy'"):
        parameters.kind("Robot", GROUPED)(reward={"scales": {"enrgy": 1.0}})


def test_what_cannot_be_set_is_an_error():
    with pytest.raises(TypeError, match="map"):
        parameters.kind("Moon", TYPES)(map=(1, 2))

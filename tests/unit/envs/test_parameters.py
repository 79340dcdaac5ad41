"""Parameters of environments that somebody else wrote."""

import pickle

import jax
import pytest

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


def test_what_cannot_be_set_is_an_error():
    with pytest.raises(TypeError, match="map"):
        parameters.kind("Moon", TYPES)(map=(1, 2))

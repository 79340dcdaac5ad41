"""What an export says of itself, by hand."""

import json
from typing import NamedTuple

import jax
import numpy as np
from agents import Sights, agent

from ppo_jax import Policy, networks
from ppo_jax.envs.env import Box, Discrete, MultiDiscrete
from ppo_jax.exports.description import describe, leaves


def described(memory=None, obs_clip=None, **env):
    network = networks.ActorCritic(networks.Mlp(hidden=(4,)), memory)
    return describe(Policy.of(agent(Sights(**env), network=network, obs_clip=obs_clip)))


def test_a_policy_by_hand():
    said = described(
        networks.Lstm(size=3),
        obs_clip=5.0,
        sights=(("x", (2, 2)), ("count", (1,))),
        space=MultiDiscrete((2, 4)),
        forbids=True,
    )
    expected = {
        "observation": [
            {"path": ["count"], "shape": [1], "dtype": "int32"},
            {"path": ["x"], "shape": [2, 2], "dtype": "float32"},
        ],
        "action": {
            "kind": "MultiDiscrete",
            "shape": [2],
            "dtype": "int32",
            "choices": [2, 4],
        },
        "mask": {"shape": [6], "dtype": "bool", "used": True},
        "normaliser": 5.0,
        "carry": [
            {"path": [0, 0], "shape": [3], "dtype": "float32"},
            {"path": [0, 1], "shape": [3], "dtype": "float32"},
        ],
    }
    assert json.loads(json.dumps(said)) == expected


def test_real_actions_without_bounds_and_single_choices():
    said = described(space=Box((-1.0, -np.inf), (np.inf, 1.0)))
    assert said["action"]["low"] == [-1.0, None]
    assert said["action"]["high"] == [None, 1.0]
    assert said["mask"] is None and said["normaliser"] is None and said["carry"] == []
    assert said["observation"] == [{"path": [], "shape": [3], "dtype": "float32"}]
    said = described(space=Discrete(3))
    assert said["action"]["shape"] == [] and said["action"]["choices"] == [3]
    assert said["mask"] == {"shape": [3], "dtype": "bool", "used": False}


def test_what_is_normalised_without_a_bound_is_not_what_is_not():
    """The largest float32, as JSON has no infinity."""
    said = json.loads(json.dumps(described(obs_clip=np.inf), allow_nan=False))
    assert np.float32(said["normaliser"]) == np.finfo(np.float32).max


class Pair(NamedTuple):
    left: jax.ShapeDtypeStruct
    right: jax.ShapeDtypeStruct


def test_fields_are_found_by_name():
    one = jax.ShapeDtypeStruct((), "float32")
    paths = [leaf["path"] for leaf in leaves({"eyes": Pair(one, one)})]
    assert paths == [["eyes", "left"], ["eyes", "right"]]

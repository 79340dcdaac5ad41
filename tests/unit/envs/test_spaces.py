"""Spaces of gymnasium: what is seen, and what is done."""

import numpy as np
import pytest
from gymnasium import spaces

from ppo_jax import envs
from ppo_jax.envs import worker
from ppo_jax.envs.spaces import action_space, moves, observations

ACTIONS = [
    (spaces.Discrete(3, start=5), envs.Discrete(3), [2, 0]),
    (spaces.MultiDiscrete([2, 3]), envs.MultiDiscrete((2, 3)), [[1, 2], [0, 0]]),
    (spaces.MultiDiscrete([2, 3], start=[4, 1]), envs.MultiDiscrete((2, 3)), [[1, 2]]),
    (spaces.MultiBinary(2), envs.MultiDiscrete((2, 2)), [[1, 0], [1, 1]]),
    (
        spaces.Box(np.float32([[-1], [0]]), np.float32([[1], [4]])),
        envs.Box((-1.0, 0.0), (1.0, 4.0)),
        [[0.5, 3.0]],
    ),
]


@pytest.mark.parametrize("space, ours, actions", ACTIONS)
def test_actions_are_those_that_the_environment_knows(space, ours, actions):
    assert action_space("Mine", space) == ours
    actions = np.array(actions, np.float32 if isinstance(ours, envs.Box) else np.int32)
    given = moves(space, actions)
    assert all(space.contains(one) for one in given)
    back = (given - getattr(space, "start", 0)).reshape(actions.shape)
    np.testing.assert_array_equal(back, actions)


def test_actions_at_finer_bounds_are_within_them():
    """0.1 and 0.3 in float32 are above those in float64, −0.1 and −0.7 are not."""
    low, high = np.array([-0.1, -0.7]), np.array([0.1, 0.3])
    space = spaces.Box(low, high, dtype=np.float64)
    ends = np.float32([low, high])
    assert not all(space.contains(end.astype(float)) for end in ends)
    given = moves(space, ends)
    assert all(space.contains(one) for one in given)
    np.testing.assert_allclose(given, [low, high], rtol=1e-7)


def test_observations_have_shapes_whatever_they_are():
    space = spaces.Dict(
        {
            "place": spaces.Discrete(4),
            "parts": spaces.Tuple(
                (spaces.MultiDiscrete([2, 3]), spaces.MultiBinary(2))
            ),
            "picture": spaces.Box(0, 255, (8, 8, 3), np.uint8),
            "speed": spaces.Box(-1.0, 1.0, (2,), np.float64),
        }
    )
    found = observations("Mine", space).shapes
    assert {name: found[name].shape for name in ("place", "picture", "speed")} == {
        "place": (4,),
        "picture": (8, 8, 3),
        "speed": (2,),
    }
    assert [x.shape for x in found["parts"]] == [(5,), (2,)]
    assert found["picture"].dtype == np.uint8 and found["speed"].dtype == np.float32


@pytest.mark.parametrize(
    ("low", "high", "kind", "expected"),
    [
        (0, 2**31 - 1, "int64", "int32"),
        (-(2**31), 0, "int64", "int32"),
        (0, 2**31, "int64", "float32"),
        (-(2**31) - 1, 0, "int64", "float32"),
        (0, 2**32 - 1, "uint32", "float32"),
        (0, 300, "uint16", "int32"),
        (-1, 1, "float16", "float32"),
    ],
)
def test_no_whole_number_is_too_large_for_what_it_becomes(low, high, kind, expected):
    """Which would wrap around, without a word."""
    space = spaces.Box(low, high, (1,), kind)
    seen = observations("Mine", space)
    assert seen.shapes.dtype == expected
    for number in (low, high):
        (read,) = seen.reads
        got = worker._leaf(np.array([number], kind), read)
        assert got.dtype == expected and np.float32(got[0]) == np.float32(number)

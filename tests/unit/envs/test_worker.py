"""Simulators as their process steps them."""

import gymnasium
import gyms
import numpy as np
import pytest

from ppo_jax.envs.spaces import observations
from ppo_jax.envs.worker import Share, mask


def share(space, *makers):
    return Share(makers, observations("Mine", space).reads)


def test_an_episode_that_ended_is_shown_to_its_end():
    """As gymnasium steps it: what was led to, then the first of the next episode."""
    env = gymnasium.make("Pendulum-v1", max_episode_steps=3)
    own = share(
        env.observation_space,
        lambda: gymnasium.make("Pendulum-v1", max_episode_steps=3),
    )
    np.testing.assert_array_equal(own.reset([7])[0][0], env.reset(seed=7)[0])
    for time in range(7):
        move = np.array([0.1 * time], np.float32)
        led, reward, *flags, _ = env.step(move)
        seen, final, *said = own.step(move[None])
        following = env.reset()[0] if any(flags) else led
        np.testing.assert_array_equal(seen[0][0], following)
        np.testing.assert_array_equal(seen[0][0] if final is None else final[0][0], led)
        assert [x.item() for x in said] == [np.float32(reward), *flags, 0.0]
        assert flags == [False, time % 3 == 2]


class Says(gymnasium.Env):
    """Shows what it is told."""

    def __init__(self, said):
        self.said = said

    def reset(self, seed=None, options=None):
        return self.said, {}


def test_whole_numbers_are_ones_among_zeros():
    spaces = gymnasium.spaces
    space = spaces.Dict(
        {"a": spaces.Discrete(3, start=-1), "b": spaces.MultiDiscrete([2, 3])}
    )
    own = share(space, lambda: Says({"a": 1, "b": np.array([1, 0])}))
    assert [x[0].tolist() for x in own.reset([0])] == [[0, 0, 1], [0, 1, 1, 0, 0]]


@pytest.mark.parametrize("said", [3, -1, [0, 1], 1.5, np.nan])
def test_whole_numbers_that_there_are_not_are_errors(said):
    own = share(gymnasium.spaces.Discrete(3), lambda: Says(np.array(said)))
    with pytest.raises(ValueError, match="observation: expected one of"):
        own.reset([0])


def test_whole_numbers_may_be_floats():
    own = share(gymnasium.spaces.Discrete(3), lambda: Says(np.float32(2)))
    assert own.reset([0])[0].tolist() == [[0, 0, 1]]


@pytest.mark.parametrize("said", [0.5, np.nan, 256, -1])
def test_a_picture_that_is_none_is_an_error(said):
    """A cast would make 0 of them, or turn black into white."""
    space = gymnasium.spaces.Dict({"eye": gymnasium.spaces.Box(0, 255, (2,), np.uint8)})
    own = share(space, lambda: Says({"eye": np.array([1, said])}))
    with pytest.raises(ValueError, match=r"\['eye'\]: expected numbers of type uint8"):
        own.reset([0])


def test_a_picture_may_be_of_another_type():
    space = gymnasium.spaces.Box(0, 255, (2,), np.uint8)
    (seen,) = share(space, lambda: Says(np.array([1.0, 255.0]))).reset([0])
    assert seen.tolist() == [[1, 255]] and seen.dtype == np.uint8


def test_a_shape_that_changes_is_an_error_that_says_where():
    space = gymnasium.spaces.Dict({"speed": gymnasium.spaces.Box(-1.0, 1.0, (2,))})
    own = share(space, lambda: Says({"speed": np.zeros(1)}))
    with pytest.raises(ValueError, match=r"\['speed'\]: expected the shape \(2,\), as"):
        own.reset([0])


class Brief(Says):
    """Ends at once, and says so in this way."""

    def reset(self, seed=None, options=None):
        return 0, {}

    def step(self, action):
        return 0, 0.0, self.said, False, {}


class Ends(Says):
    """Ends an episode in a way of its own."""

    def step(self, action):
        return 0.0, 0.0, *self.said, {}


@pytest.mark.parametrize("name", ["terminated", "truncated"])
@pytest.mark.parametrize(
    "flag", [np.nan, 2, None, "no", [False], np.zeros((1, 1), bool)], ids=str
)
def test_a_flag_that_is_neither_true_nor_false_is_an_error(name, flag):
    """PROP-1.5, R-A22, X4."""
    flags = {"terminated": False, "truncated": False} | {name: flag}
    own = share(gymnasium.spaces.Box(-1.0, 1.0, ()), lambda: Ends(flags.values()))
    with pytest.raises(ValueError, match=f"{name}: expected True or False, got"):
        own.step(np.zeros(1, int))


@pytest.mark.parametrize("flag", [True, np.True_, 1, np.float32(1.0), np.array(True)])
def test_a_flag_may_be_any_number_that_is_one(flag):
    own = share(gymnasium.spaces.Discrete(2), lambda: Brief(flag))
    _, _, _, terminated, truncated, _ = own.step(np.zeros(1, int))
    assert (terminated.tolist(), truncated.tolist()) == ([True], [False])


def test_some_of_many_begin_anew():
    own = share(gyms.Walk.observation_space, gyms.Walk, gyms.Walk, gyms.Walk)
    own.reset([0, 1, 2])
    own.step(np.array([0, 1, 1]))
    assert own.restart([1])[0].tolist() == [[0.0, 0.0]]
    assert own.step(np.array([0, 1, 1]))[0][0][:, 1].tolist() == [0.25, 0.125, 0.25]


CHOICES = (2, 3)
ALLOWED = [True, False, True, True, False]


@pytest.mark.parametrize(
    "said",
    [
        np.array([1, 0, 1, 1, 0], np.int8),
        ALLOWED,
        (np.array([1, 0], np.int8), np.array([1, 1, 0], np.int8)),
    ],
)
def test_masks_are_read_as_spaces_of_gymnasium_take_them(said):
    """Flat, or an array for each part of an action."""
    found = mask({"action_mask": said, "speed": 3}, CHOICES)
    assert found.dtype == bool and found.tolist() == ALLOWED


MASKS = {
    "expected one, as after the first reset": None,
    "expected 5 zeros and ones, got ": np.ones(4),
    "expected 5 zeros and ones, got array": np.array([1, 0, 1, 2, 0]),
    "expected 5 zeros and ones, got 'all'": "all",
    "no action is allowed, got ": np.array([1, 1, 0, 0, 0]),
}


@pytest.mark.parametrize("said", MASKS)
def test_masks_that_are_none_are_errors(said):
    with pytest.raises(ValueError, match=rf"^info\['action_mask'\]: {said}"):
        mask({} if MASKS[said] is None else {"action_mask": MASKS[said]}, CHOICES)

"""Pictures of gymnax show where the state says that things are."""

import dataclasses
import math

import jax
import numpy as np
import pytest

from ppo_jax import envs
from ppo_jax.envs.canvas import BLUE, CELLS, ORANGE
from ppo_jax.errors import UserError


def start(env):
    return jax.device_get(env.reset(jax.random.key(0))[1])


def centre(picture, colour, across, top):
    """Where a colour is in a picture, on average, in units of the environment."""
    rows, columns = np.nonzero((picture == colour).all(-1))
    unit = (across[1] - across[0]) / picture.shape[1]
    return across[0] + (columns.mean() + 0.5) * unit, top - (rows.mean() + 0.5) * unit


@pytest.mark.parametrize("angle", [-0.2, 0.0, 0.15])
def test_the_pole_of_a_cart_leans_as_it_does(angle):
    """It is as long as twice what gymnax calls its length, half of what it is."""
    env = envs.Gymnax("CartPole-v1", {"length": 0.75})
    state = dataclasses.replace(start(env), x=np.float32(1.2), theta=np.float32(angle))
    x, y = centre(env.render(state), ORANGE, (-2.7, 2.7), 1.8)
    expected = 1.2 + 0.75 * math.sin(angle), 0.75 * math.cos(angle)
    assert (x, y) == pytest.approx(expected, abs=0.02)


@pytest.mark.parametrize("angle", [0.0, 1.0, math.pi, -2.0])
def test_a_pendulum_stands_up_at_zero(angle):
    """And turns to the left; what is in the middle covers a little of it."""
    env = envs.make("Pendulum-v1")
    state = dataclasses.replace(start(env), theta=np.float32(angle))
    x, y = centre(env.render(state), ORANGE, (-1.8, 1.8), 1.25)
    assert x == pytest.approx(-0.5 * math.sin(angle), abs=0.03)
    assert y == pytest.approx(0.5 * math.cos(angle), abs=0.03)


def test_an_acrobat_hangs_by_its_upper_arm():
    env = envs.make("Acrobot-v1")
    turned = {"joint_angle1": np.float32(0.5), "joint_angle2": np.float32(0.7)}
    picture = env.render(dataclasses.replace(start(env), **turned))
    elbow = math.sin(0.5), -math.cos(0.5)
    lower = elbow[0] + math.sin(1.2) / 2, elbow[1] - math.cos(1.2) / 2
    found = centre(picture, ORANGE, (-3.3, 3.3), 2.2)
    assert found == pytest.approx(lower, abs=0.04)
    upper = centre(picture, BLUE, (-3.3, 3.3), 2.2)
    assert upper == pytest.approx((elbow[0] / 2, elbow[1] / 2), abs=0.08)


@pytest.mark.parametrize("env_id", ["MountainCar-v0", "MountainCarContinuous-v0"])
def test_a_car_stands_on_its_mountain(env_id):
    env = envs.make(env_id)
    state = dataclasses.replace(start(env), position=np.float32(-0.9))
    x, y = centre(env.render(state), BLUE, (-1.2, 0.6), 1.2)
    assert x == pytest.approx(-0.9, abs=0.01)
    assert y == pytest.approx(0.45 * math.sin(-2.7) + 0.55 + 0.035, abs=0.01)


@pytest.mark.parametrize("env_id", ["Breakout-MinAtar", "Catch-bsuite"])
def test_a_grid_shows_what_the_agent_sees(env_id):
    """A cell is black if and only if nothing is there."""
    env = envs.make(env_id)
    seen, state = jax.device_get(env.reset(jax.random.key(0)))
    rows, columns, *_ = seen.shape
    picture = env.render(state)
    size = picture.shape[0] // rows
    assert picture.dtype == np.uint8
    assert picture.shape == (rows * size, columns * size, 3)
    there = seen.reshape(rows, columns, -1).any(-1)
    shown = picture.reshape(rows, size, columns, size, 3).any(-1)
    np.testing.assert_array_equal(shown.all((1, 3)), there)
    np.testing.assert_array_equal(shown.any((1, 3)), there)


def test_a_maze_shows_walls_goal_and_agent():
    env = envs.make("FourRooms-misc")
    state = start(env)
    picture = env.render(state)
    size = picture.shape[0] // 13
    cells = picture[size // 2 :: size, size // 2 :: size]
    for place, colour in ((state.goal, CELLS[1]), (state.pos, CELLS[2])):
        assert tuple(cells[tuple(place)]) == colour
    assert (cells == CELLS[0]).all(-1).sum() == 65  # Of 169 cells, 104 are free.


@pytest.mark.parametrize("env_id", ["UmbrellaChain-bsuite", "FrozenLake-misc"])
def test_what_cannot_be_drawn_names_what_can(env_id):
    env = envs.make(env_id)
    said = f"{env_id} cannot be drawn; of gymnax, there are pictures of CartPole-v1, "
    with pytest.raises(UserError, match=said):
        env.render(start(env))


def test_wrappers_pass_it_on():
    """Each with the state of what it is around."""
    env = envs.make("CartPole-v1")
    wrapped = (
        envs.TimeLimit(env, 9),
        envs.MaskObservation(env, (0, 2)),
        envs.Faulty(env),
        envs.ResetPool(env, 2),
        envs.TimeLimit(envs.ResetPool(env, 2), 9),
    )
    for each in wrapped:
        state = start(each)
        inner = state
        while not hasattr(inner, "theta"):
            inner = inner.env
        np.testing.assert_array_equal(each.render(state), env.render(inner))
    with pytest.raises(UserError, match=r"Env\.render: missing; an environment is "):
        envs.Env().render(())

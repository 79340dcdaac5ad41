"""Pictures of gymnax's environments; gymnax's own need windows, or far longer."""

import math
from typing import Any

import numpy as np

from ppo_jax.envs.canvas import BLUE, GREEN, GREY, INK, ORANGE, Canvas, grid
from ppo_jax.errors import UserError

WALL, GOAL, AGENT = range(3)
"""Kinds of things in a maze."""


def draw(env: Any, params: Any, state: Any) -> np.ndarray:
    """Draws a picture of a state, uint8 `[H, W, 3]`.

    Raises:
        UserError: If there is no picture of this environment.
    """
    if env.name in MOVING:
        return MOVING[env.name](params, state)
    if hasattr(env, "occupied_map"):
        return _maze(np.asarray(env.occupied_map), state)
    rows, columns, *kinds = *env.observation_space(params).shape, 0, 0
    if len(kinds) in (2, 3) and min(rows, columns) > 1:
        seen = np.asarray(env.get_obs(state, params))
        return grid(seen.reshape(rows, columns, -1))
    raise UserError(
        f"{env.name} cannot be drawn; of gymnax, there are pictures of "
        f"{', '.join(MOVING)}, of mazes, and of what is seen as a grid, such as MinAtar"
    )


def _cart_pole(params: Any, state: Any) -> np.ndarray:
    edge, length = float(params.x_threshold), 2 * float(params.length)
    x, angle = float(state.x), float(state.theta)
    canvas = Canvas((-edge - 0.3, edge + 0.3), (-0.4, length + 0.3))
    canvas.line([(-edge, -0.2), (edge, -0.2)], 0.02, GREY)
    canvas.line([(x - 0.2, 0.0), (x + 0.2, 0.0)], 0.25, INK)
    tip = x + length * math.sin(angle), length * math.cos(angle)
    canvas.line([(x, 0.0), tip], 0.1, ORANGE)
    return canvas.picture


def _pendulum(params: Any, state: Any) -> np.ndarray:
    angle = float(state.theta)
    canvas = Canvas((-1.8, 1.8), (-1.25, 1.25))
    canvas.line([(0.0, 0.0), (-math.sin(angle), math.cos(angle))], 0.2, ORANGE)
    canvas.line([(0.0, 0.0)], 0.08, INK)
    return canvas.picture


def _acrobot(params: Any, state: Any) -> np.ndarray:
    upper, lower = float(params.link_length_1), float(params.link_length_2)
    first = float(state.joint_angle1)
    second = first + float(state.joint_angle2)
    elbow = upper * math.sin(first), -upper * math.cos(first)
    hand = elbow[0] + lower * math.sin(second), elbow[1] - lower * math.cos(second)
    reach = upper + lower + 0.2
    canvas = Canvas((-1.5 * reach, 1.5 * reach), (-reach, reach))
    canvas.line([(-1.5 * reach, upper), (1.5 * reach, upper)], 0.02, GREEN)
    canvas.line([(0.0, 0.0), elbow], 0.2, BLUE)
    canvas.line([elbow, hand], 0.2, ORANGE)
    for joint in ((0.0, 0.0), elbow):
        canvas.line([joint], 0.1, INK)
    return canvas.picture


def _mountain_car(params: Any, state: Any) -> np.ndarray:
    low, high = float(params.min_position), float(params.max_position)
    canvas = Canvas((low, high), (0.0, 1.2))
    canvas.below(_hill(canvas.columns), GREY)
    goal, x = float(params.goal_position), float(state.position)
    canvas.line([(goal, _hill(goal)), (goal, _hill(goal) + 0.15)], 0.015, GREEN)
    canvas.line([(x, _hill(x) + 0.035)], 0.07, BLUE)
    return canvas.picture


def _hill(x: Any) -> Any:
    return 0.45 * np.sin(3 * x) + 0.55


def _maze(walls: np.ndarray, state: Any) -> np.ndarray:
    cells = np.zeros((*walls.shape, 3))
    cells[..., WALL] = walls
    cells[(*state.goal, GOAL)] = cells[(*state.pos, AGENT)] = 1
    return grid(cells)


MOVING = {
    "CartPole-v1": _cart_pole,
    "Pendulum-v1": _pendulum,
    "Acrobot-v1": _acrobot,
    "MountainCar-v0": _mountain_car,
    "MountainCarContinuous-v0": _mountain_car,
}
"""Functions that draw environments which are no grids, by name."""

"""Pictures of rigid bodies, by MuJoCo's renderer, which needs OpenGL."""

import functools
import warnings
from collections.abc import Mapping
from typing import Any

import numpy as np

from ppo_jax.envs.deferred import brought
from ppo_jax.envs.opengl import NEEDED
from ppo_jax.errors import UserError, brief

HEIGHT, WIDTH = 240, 320


def draw(name: str, model: Any, pose: Mapping[str, Any]) -> np.ndarray:
    """Draws a model, by its first camera if it has one, uint8 `[H, W, 3]`.

    Args:
        name: The model's name in messages.
        model: MuJoCo's own model, on the host.
        pose: Fields to set of the model's data, such as `qpos`, by name.

    Raises:
        UserError: If there is no OpenGL.
    """
    mujoco: Any = brought("mujoco", extra="mujoco", wanted=name)
    data = mujoco.MjData(model)
    for field, value in pose.items():
        setattr(data, field, value)
    mujoco.mj_forward(model, data)
    renderer = _renderer(name, model)
    renderer.update_scene(data, camera=0 if model.ncam else -1)
    return renderer.render()


@functools.cache
def _renderer(name: str, model: Any) -> Any:
    """Makes a renderer, which is kept: a context of OpenGL takes long to make."""
    mujoco: Any = brought("mujoco", extra="mujoco", wanted=name)
    try:
        with warnings.catch_warnings(action="ignore"):
            return mujoco.Renderer(model, HEIGHT, WIDTH)
    except Exception as error:
        message = brief(error).splitlines()[0]
        raise UserError(f"{name}: cannot be drawn: {message}; {NEEDED}") from error

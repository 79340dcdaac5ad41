"""MiniGrid's tasks in XLand-MiniGrid, with the grid around the agent as observation."""

import functools
from collections.abc import Mapping
from types import ModuleType
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from ppo_jax.component import component, require
from ppo_jax.component.suggestion import unknown
from ppo_jax.envs import parameters
from ppo_jax.envs.deferred import brought
from ppo_jax.envs.env import ActionSpace, Discrete, Env, Step, outcome, strong
from ppo_jax.envs.parameters import Parameters
from ppo_jax.types import Array, Key, PyTree

UNRULED = "XLand"
"""Start of the ids of tasks whose rules come from a benchmark."""
LAYERS = (13, 12)
"""Numbers of tiles and of colours."""


@component
class XMiniGrid(Env):
    """An environment of XLand-MiniGrid, `xminigrid/MiniGrid-DoorKey-8x8` as an id.

    Observations are an egocentric square of the grid, as the suite shows it, and the
    direction of the agent: `{"grid": [view, view, 25], "direction": [4]}`. Each cell
    has one-hot vectors of its tile, 13 numbers, and of its colour, 12 numbers; a `Cnn`
    takes them as they are. As in the suite, the object that the agent carries cannot be
    seen.

    A `ResetPool` makes DoorKey-8x8 by itself about twice as fast, of which little is
    left in training.

    Attributes:
        id: XLand-MiniGrid's name of the environment.
        params: Parameters that are set, by name; all are structure.

    Raises:
        ValueError: At construction, if xminigrid is not installed, does not know the
            id, or needs rules for it.
        TypeError: At construction, for an unknown parameter.
    """

    id: str = "MiniGrid-DoorKey-8x8"
    params: Parameters | Mapping[str, Any] = Parameters()

    def validate(self) -> None:
        """Raises an error for an unknown id or parameter; completes parameters."""
        known = _xminigrid(self.id).registered_environments()
        if self.id not in known:
            message = unknown("environment of xminigrid", self.id, known)
            raise ValueError(f"XMiniGrid.id: {message}")
        ruled = not self.id.startswith(UNRULED)
        expected = (
            "a task of MiniGrid: what is to be done in one of XLand is said by a "
            "benchmark, which would have to be downloaded"
        )
        require(ruled, "XMiniGrid.id", self.id, expected)
        given = parameters.given(self.params)
        object.__setattr__(self, "params", _parameters(self.id, given))
        for name, value in given.items():
            require(value >= 1, f"XMiniGrid.params.{name}", value, "at least 1")

    @property
    def action_space(self) -> ActionSpace:
        env, params = self._load()
        return Discrete(env.num_actions(params))

    @property
    def min_steps_to_truncation(self) -> int:
        return self._load().params.max_steps

    @property
    def max_episode_steps(self) -> int | None:
        return self._load().params.max_steps

    def reset(self, key: Key) -> tuple[PyTree, PyTree]:
        env, params = self._load()
        timestep = strong(env.reset(params, key))
        return _seen(timestep), timestep

    def transition(self, key: Key, state: PyTree, action: Array) -> Step:
        env, params = self._load()
        timestep = strong(env.step(params, state, action))
        terminated = timestep.discount == 0
        truncated = timestep.last() & ~terminated
        seen = _seen(timestep)
        return outcome(seen, timestep.reward, terminated, truncated), timestep

    def render(self, state: PyTree) -> np.ndarray:
        env, params = self._load()
        return np.asarray(env.render(params, state))

    def _load(self) -> "_Loaded":
        return _load(self.id, tuple(parameters.given(self.params).items()))


def _seen(timestep: Any) -> PyTree:
    """Returns the observation of a timestep of xminigrid, as floats."""
    layers = zip(jnp.moveaxis(timestep.observation, -1, 0), LAYERS, strict=True)
    kinds = [jax.nn.one_hot(layer, count) for layer, count in layers]
    direction = jax.nn.one_hot(timestep.state.agent.direction, 4)
    return {"grid": jnp.concatenate(kinds, axis=-1), "direction": direction}


def _parameters(env_id: str, given: Mapping[str, Any]) -> Parameters:
    """Returns an environment's parameters, which are counts; None if not given."""
    types = parameters.types_of(_load(env_id, ()).params)
    counts = {name: of for name, of in types.items() if of is int}
    return parameters.kind(env_id, counts)(**given)


class _Loaded(NamedTuple):
    env: Any
    params: Any


def _xminigrid(env_id: str) -> ModuleType:
    return brought("xminigrid", "xminigrid", f"XMiniGrid.id: {env_id!r}")


@functools.cache
def _load(env_id: str, params: tuple[tuple[str, Any], ...]) -> _Loaded:
    # The first call may be inside a trace, whose tracers must not be cached.
    with jax.ensure_compile_time_eval():
        return _Loaded(*_xminigrid(env_id).make(env_id, **dict(params)))

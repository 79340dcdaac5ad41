"""Worlds of Craftax."""

import dataclasses
import functools
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import jax
import numpy as np

from ppo_jax.component import component, require
from ppo_jax.component.suggestion import unknown
from ppo_jax.envs import parameters
from ppo_jax.envs.deferred import brought
from ppo_jax.envs.env import NEVER, ActionSpace, Discrete, Env, Step, outcome, strong
from ppo_jax.envs.parameters import Parameters
from ppo_jax.types import Array, Key, PyTree

LIMIT = "max_timesteps"
"""The parameter that truncates an episode."""
IDS = (
    "Craftax-Classic-Symbolic-v1",
    "Craftax-Classic-Pixels-v1",
    "Craftax-Symbolic-v1",
    "Craftax-Pixels-v1",
)
"""Ids of environments, of which Craftax has no list."""
BLOCK = 16
"""Pixels of a block of the world in a picture, one of the sizes that Craftax has."""


@component
class Craftax(Env):
    """An environment of Craftax, `craftax/Craftax-Classic-Symbolic-v1` as an id.

    Observations are those of Craftax: numbers `[n]`, or pixels `[H, W, 3]` from 0 to 1.

    At its time limit, Craftax reports only that the episode is done. Here, an episode
    has terminated if it would have ended without the limit too; otherwise it is
    truncated.

    A world takes far longer to make than a step in it: always go through a
    `ResetPool`, with which 64 environments are some twenty times as fast.

    Attributes:
        id: Craftax's name of the environment.
        params: Parameters that are set, by name.

    Raises:
        ValueError: At construction, if Craftax is not installed, or does not know the
            id.
        TypeError: At construction, for an unknown parameter.
    """

    id: str = "Craftax-Classic-Symbolic-v1"
    params: Parameters | Mapping[str, Any] = Parameters()

    def validate(self) -> None:
        """Raises an error for an unknown id or parameter; completes parameters."""
        if self.id not in IDS:
            message = unknown("environment of Craftax", self.id, IDS)
            raise ValueError(f"Craftax.id: {message}")
        given = parameters.given(self.params)
        object.__setattr__(self, "params", _parameters(self.id, given))
        limit = given.get(LIMIT, 1)
        require(limit >= 1, f"Craftax.params.{LIMIT}", limit, "at least 1")

    @property
    def action_space(self) -> ActionSpace:
        return Discrete(_load(self.id).env.num_actions)

    @property
    def min_steps_to_truncation(self) -> int:
        return getattr(self._load().params, LIMIT)

    @property
    def max_episode_steps(self) -> int | None:
        return getattr(self._load().params, LIMIT)

    def reset(self, key: Key) -> tuple[PyTree, PyTree]:
        env, params = self._load()
        return strong(env.reset_env(key, params))

    def transition(self, key: Key, state: PyTree, action: Array) -> Step:
        env, params = self._load()
        obs, state, reward, done, _ = env.step_env(key, state, action, params)
        endless = dataclasses.replace(params, **{LIMIT: NEVER})
        terminated = env.is_terminal(state, endless)
        return outcome(obs, reward, terminated, done & ~terminated), strong(state)

    def render(self, state: PyTree) -> np.ndarray:
        return np.asarray(_renderer(self.id)(state)).astype(np.uint8)

    def _load(self) -> "_Loaded":
        """Returns the environment, with its parameters."""
        env, params = _load(self.id)
        given = parameters.given(self.params)
        return _Loaded(env, dataclasses.replace(params, **given))


def _parameters(env_id: str, given: Mapping[str, Any]) -> Parameters:
    """Returns the parameters of an environment; those not given are None."""
    _, params = _load(env_id)
    return parameters.kind(env_id, parameters.types_of(params))(**given)


class _Loaded(NamedTuple):
    env: Any
    params: Any


@functools.cache
def _renderer(env_id: str) -> Callable[[PyTree], Array]:
    """Returns a function that draws a state, with pixels from 0 to 255."""
    wanted = f"Craftax.id: {env_id!r}"
    if "Classic" in env_id:
        home = brought("craftax.craftax_classic.renderer", "craftax", wanted)
    else:
        home = brought("craftax.craftax.renderer", "craftax", wanted)
    return jax.jit(home.make_craftax_pixel_renderer(BLOCK))


@functools.cache
def _load(env_id: str) -> _Loaded:
    # The first call may be inside a trace, whose tracers must not be cached.
    with jax.ensure_compile_time_eval():
        craftax = brought("craftax.craftax_env", "craftax", f"Craftax.id: {env_id!r}")
        env = craftax.make_craftax_env_from_name(env_id, auto_reset=False)
        return _Loaded(env, env.default_params)

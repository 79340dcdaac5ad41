"""Games and puzzles of Jumanji."""

import copy
import functools
import inspect
import math
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
from ppo_jax.envs.env import (
    NEVER,
    ActionSpace,
    Box,
    Discrete,
    Env,
    MultiDiscrete,
    Step,
    outcome,
    strong,
)
from ppo_jax.envs.parameters import Parameters
from ppo_jax.types import Array, Key, PyTree

LIMIT = "time_limit"
"""The parameter that truncates an episode."""
MASK = "action_mask"
"""The field of an observation with the mask of allowed actions."""
MOST_KINDS = 32
"""Most values that an integer shown as a one-hot vector may have; one with more values
is shown as a number from 0 to 1."""
DOWNLOADED = ("Sokoban-v0",)
"""Environments that download their levels as soon as they are made."""


class JumanjiState(NamedTuple):
    """State of `Jumanji`."""

    env: PyTree
    mask: Array | None
    """Mask of the allowed actions; None if the environment has no masks."""


@component
class Jumanji(Env):
    """An environment of Jumanji, `jumanji/Snake-v1` as an id.

    Observations are dictionaries of the fields that Jumanji shows, as floats: an
    integer with up to 32 values is a one-hot vector in an axis of its own, one with
    more goes from 0 to 1. So grids of kinds are grids with features, as `Cnn` takes
    them. Where no action is allowed, as in a dead end of Snake, all are: the episode
    ends with any of them.

    Actions of several parts are `MultiDiscrete`. If the allowed choices of one part
    depend on the others, as in Tetris, they are one `Discrete` of all combinations.
    Several agents are one, who acts for all and has the sum of their rewards.

    Jumanji reports most time limits as terminations. Here, an episode has terminated
    if it would have ended without the limit too; otherwise it is truncated.

    A `ResetPool` makes Snake by itself 1.7 times as fast, of which little is left in
    training; it pays where starts are costly.

    Attributes:
        id: Jumanji's name of the environment.
        params: Numbers of its constructor that are set, by name.

    Raises:
        ValueError: At construction, if Jumanji is not installed, does not know the id,
            or would have to download the environment.
        TypeError: At construction, for an unknown parameter.
    """

    id: str = "Snake-v1"
    params: Parameters | Mapping[str, Any] = Parameters()

    def validate(self) -> None:
        """Raises an error for an unknown id or parameter; completes parameters."""
        known = _jumanji(self.id).registered_environments()
        if self.id not in known:
            message = unknown("environment of Jumanji", self.id, sorted(known))
            raise ValueError(f"Jumanji.id: {message}")
        expected = "an environment that does not have to download its levels"
        require(self.id not in DOWNLOADED, "Jumanji.id", self.id, expected)
        given = parameters.given(self.params)
        object.__setattr__(self, "params", _parameters(self.id, given))
        for name, value in given.items():
            counts = isinstance(value, int) and not isinstance(value, bool)
            ok = not counts or value >= 1
            require(ok, f"Jumanji.params.{name}", value, "at least 1")

    @property
    def action_space(self) -> ActionSpace:
        return self._load().action_space

    @property
    def min_steps_to_truncation(self) -> int:
        return self._load().limit or 1

    @property
    def max_episode_steps(self) -> int | None:
        return self._load().limit

    def reset(self, key: Key) -> tuple[PyTree, PyTree]:
        loaded = self._load()
        state, timestep = loaded.env.reset(key)
        return loaded.seen(timestep), loaded.state(state, timestep)

    def transition(self, key: Key, state: PyTree, action: Array) -> Step:
        loaded = self._load()
        action = loaded.action(action)
        # Copies, as MMST writes into the state that it is given.
        after, timestep = loaded.env.step(copy.copy(state.env), action)
        _, unlimited = loaded.endless.step(copy.copy(state.env), action)
        terminated = unlimited.last() & (jnp.max(unlimited.discount) == 0)
        truncated = timestep.last() & ~terminated
        reward = jnp.sum(timestep.reward)
        seen = outcome(loaded.seen(timestep), reward, terminated, truncated)
        return seen, loaded.state(after, timestep)

    def action_mask(self, state: PyTree) -> Array | None:
        return state.mask

    def render(self, state: PyTree) -> np.ndarray:
        env, pictures = copy.copy(self._load().env), []
        for name, viewer in [*vars(env).items()]:
            if hasattr(viewer, "_display_rgb_array"):
                setattr(env, name, _keeping(pictures, copy.copy(viewer)))
        env.render(jax.tree.map(jnp.asarray, state.env))
        return pictures[-1][::2, ::2, :3].copy()  # Large, and with no use for alpha.

    def _load(self) -> "_Loaded":
        """Returns the environment, with its static parameters and its numbers."""
        given = parameters.given(self.params)
        structure = dict(parameters.structure(self.params))
        loaded = _load(self.id, tuple(structure.items()))
        numbers = {name: given[name] for name in given.keys() - structure.keys()}
        env, endless = (_changed(x, **numbers) for x in (loaded.env, loaded.endless))
        return loaded._replace(env=env, endless=endless)


def _keeping(pictures: list[np.ndarray], viewer: Any) -> Any:
    """Makes a viewer keep its pictures, as some environments do not return them."""
    viewer._display = lambda drawn: pictures.append(viewer._display_rgb_array(drawn))
    return viewer


class _Loaded(NamedTuple):
    env: Any
    endless: Any
    """A copy of the environment without a time limit."""
    limit: int | None
    action_space: ActionSpace
    joint: tuple[int, ...] | None
    """Sizes of the parts that make up one action, if masks are of combinations."""

    def action(self, action: Array) -> Array:
        """Returns an action as Jumanji takes it."""
        if self.joint is not None:
            return jnp.stack(jnp.unravel_index(action, self.joint))
        return action.reshape(self.env.action_spec.shape)

    def seen(self, timestep: Any) -> PyTree:
        """Returns the observation of a timestep."""
        return _numbers(self.env.observation_spec, timestep.observation)

    def state(self, state: PyTree, timestep: Any) -> JumanjiState:
        """Returns the state, with a mask in the form of the actions."""
        mask = getattr(timestep.observation, MASK, None)
        if mask is None:
            return JumanjiState(strong(state), None)
        mask = mask.ravel() if self.joint is not None else mask
        lost = ~mask.any(axis=-1, keepdims=True)
        return JumanjiState(strong(state), (mask | lost).ravel())


def _numbers(spec: Any, seen: Any) -> PyTree:
    """Converts an observation to floats; a part with fields becomes a dictionary."""
    fields = seen._asdict() if hasattr(seen, "_asdict") else seen
    if isinstance(fields, Mapping):
        return {name: _numbers(spec[name], x) for name, x in fields.items()}
    seen = jnp.asarray(seen)
    low, high = getattr(spec, "minimum", None), getattr(spec, "maximum", None)
    if low is None or not jnp.issubdtype(seen.dtype, jnp.integer):
        return seen.astype(jnp.float32)
    low, high = int(np.asarray(low).min()), int(np.asarray(high).max())
    if 2 < high - low + 1 <= MOST_KINDS:  # Some count one further than they say.
        return jax.nn.one_hot(jnp.clip(seen, low, high) - low, high - low + 1)
    return (seen - low) / jnp.float32(max(high - low, 1))


def _parameters(env_id: str, given: Mapping[str, Any]) -> Parameters:
    """Returns the constructor's parameters that the environment keeps as numbers."""
    env = _load(env_id, ()).env
    names = inspect.signature(type(env)).parameters
    types = {name: type(getattr(env, name, None)) for name in names}
    return parameters.kind(env_id, types)(**given)


def _changed(env: Any, **attributes: Any) -> Any:
    """Returns a copy of an environment with other attributes."""
    env = copy.copy(env)
    for name, value in attributes.items():
        setattr(env, name, value)
    return env


def _jumanji(env_id: str) -> ModuleType:
    return brought("jumanji", "jumanji", f"Jumanji.id: {env_id!r}")


@functools.cache
def _load(env_id: str, structure: tuple[tuple[str, Any], ...]) -> _Loaded:
    """Loads an environment with its static parameters, the same for all numbers."""
    # The first call may be inside a trace, whose tracers must not be cached.
    with jax.ensure_compile_time_eval():
        env = _jumanji(env_id).make(env_id, **dict(structure))
        actions, seen = env.action_spec, env.observation_spec
    limit = getattr(env, LIMIT, None)
    endless = _changed(env, **{LIMIT: NEVER} if limit else {})
    space, joint = _actions(actions, getattr(seen, "_specs", {}).get(MASK))
    return _Loaded(env, endless, limit, space, joint)


def _actions(spec: Any, mask: Any) -> tuple[ActionSpace, tuple[int, ...] | None]:
    """Converts an action space; also returns its parts if masks are of combinations."""
    if not hasattr(spec, "num_values"):
        real = jnp.issubdtype(spec.dtype, jnp.floating)
        require(real, "Jumanji.id: actions", spec, "real ones, or so many of a kind")
        bounds = (np.broadcast_to(x, spec.shape) for x in (spec.minimum, spec.maximum))
        low, high = (tuple(x.astype(float).ravel().tolist()) for x in bounds)
        return Box(low, high), None
    nvec = tuple(np.ravel(spec.num_values).tolist())
    if not spec.shape:
        return Discrete(*nvec), None
    if mask is not None and math.prod(mask.shape) != sum(nvec):
        return Discrete(math.prod(nvec)), nvec
    return MultiDiscrete(nvec), None

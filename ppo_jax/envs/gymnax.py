"""Environments of gymnax ≥ 1.0."""

import dataclasses
import functools
import math
from collections.abc import Mapping
from typing import Any, NamedTuple
from urllib.error import URLError

import jax
import jax.numpy as jnp
import numpy as np

from ppo_jax.arrays import devices
from ppo_jax.component import component, concrete, require
from ppo_jax.component.suggestion import unknown
from ppo_jax.envs import parameters, pictures
from ppo_jax.envs.deferred import deferred
from ppo_jax.envs.env import (
    ActionSpace,
    Box,
    Discrete,
    Env,
    MultiDiscrete,
    Step,
    Timestep,
    outcome,
    strong,
)
from ppo_jax.envs.parameters import Parameters
from ppo_jax.types import Array, Key, PyTree

LIMIT = "max_steps_in_episode"
"""The parameter that truncates an episode."""
PARTS = ("reset", "transition", "restart")
"""Methods that a step of any `Env` consists of."""


@component
class Gymnax(Env):
    """An environment of gymnax ≥ 1.0; make yours known with `gymnax.register`.

    Steps may put more into `info`: `weight`, `cost` and `group`, as in `Timestep`. An
    environment with a method `action_mask(state, params)` has its actions masked.

    Attributes:
        id: Gymnax's name of the environment.
        params: Parameters that are set, by name.

    Raises:
        ValueError: At construction, for an id that gymnax does not know, an environment
            that cannot be downloaded though it has to be, or parameters that change its
            space of actions.
        TypeError: At construction, for an unknown parameter.

    >>> Gymnax("CartPole-v1", params={"gravity": 5, "max_steps_in_episode": 9})
    Gymnax(id='CartPole-v1', params={'max_steps_in_episode': 9, 'gravity': 5.0})
    """

    id: str = "CartPole-v1"
    params: Parameters | Mapping[str, Any] = Parameters()

    def validate(self) -> None:
        """Raises an error for an unknown id or parameter; completes parameters."""
        known = _gymnax().registered_envs
        if self.id not in known:
            message = unknown("environment of gymnax", self.id, known)
            others = (
                "those of other suites begin with theirs, as brax/ant does, and "
                "gymnasium/HalfCheetah-v5"
            )
            raise ValueError(f"Gymnax.id: {message}; {others}; yours is an Env")
        given = parameters.given(self.params)
        object.__setattr__(self, "params", _parameters(self.id, given))
        if given and all(map(concrete, given.values())):
            env, params, actions, *_ = self._load()
            same = _action_space(self.id, env, params) == actions
            expected = f"numbers that leave the actions {actions}"
            require(same, "Gymnax.params", given, expected)

    @property
    def action_space(self) -> ActionSpace:
        return self._load().action_space

    @property
    def min_steps_to_truncation(self) -> int:
        return self._load().limit or 1

    @property
    def max_episode_steps(self) -> int | None:
        return self._load().limit

    @property
    def has_transition(self) -> bool:
        return self._load().has_transition and type(self).step is Gymnax.step

    def reset(self, key: Key) -> tuple[PyTree, PyTree]:
        env, params, *_ = self._load()
        return strong(env.reset(key, params))

    def transition(self, key: Key, state: PyTree, action: Array) -> Step:
        env, params, _, shape, *_ = self._load()
        obs, state, reward, terminated, info = env.step_env(
            key, state, action.reshape(shape), params
        )
        truncated = env.is_truncated(state, params)
        return _timestep(obs, reward, terminated, truncated, info), strong(state)

    def step(self, key: Key, state: PyTree, action: Array) -> Step:
        if any(getattr(type(self), x) is not getattr(Gymnax, x) for x in PARTS):
            return Env.step(self, key, state, action)  # A subclass has its own.
        env, params, _, shape, *_ = self._load()
        obs, state, reward, terminated, truncated, info = env.step(
            key, state, action.reshape(shape), params
        )
        final_obs = info["final_observation"]
        timestep = _timestep(final_obs, reward, terminated, truncated, info)
        return timestep._replace(obs=strong(obs)), strong(state)

    def action_mask(self, state: PyTree) -> Array | None:
        env, params, *_ = self._load()
        masks = getattr(env, "action_mask", None)
        return None if masks is None else jnp.asarray(masks(state, params), bool)

    def render(self, state: PyTree) -> np.ndarray:
        env, params, *_ = self._load()
        return pictures.draw(env, params, state)

    def _load(self) -> "_Loaded":
        """Returns the environment, with its static parameters and its numbers."""
        given = parameters.given(self.params)
        loaded = _load(self.id, parameters.structure(self.params))
        return loaded._replace(params=dataclasses.replace(loaded.params, **given))


def _timestep(
    obs: PyTree, reward: Array, terminated: Array, truncated: Array, info: Any
) -> Timestep:
    """Returns the timestep of a step, with further fields from `info`."""
    fields = {"reward": reward, "terminated": terminated, "truncated": truncated}
    fields |= {k: info[k] for k in ("weight", "cost", "group") if k in info}
    return outcome(obs, **{name: jnp.reshape(x, ()) for name, x in fields.items()})


def _parameters(env_id: str, given: Mapping[str, Any]) -> Parameters:
    """Returns the parameters of an environment; those not given are None."""
    _, params = _make(env_id)
    types = parameters.types_of(params)
    types |= {LIMIT: int} if LIMIT in types else {}
    return parameters.kind(env_id, types)(**given)


class _Loaded(NamedTuple):
    env: Any
    params: Any
    action_space: ActionSpace
    action_shape: tuple[int, ...]
    limit: int | None  # Steps to truncation, if gymnax counts them.
    has_transition: bool  # Whether a step is a transition and a reset, and no more.


@functools.cache
def _gymnax() -> Any:
    """Imports gymnax at first use, without modules that only its pictures need.

    Seaborn, with pandas, and matplotlib would take 100 MiB and most of the time. JAX
    starts when gymnax is imported, so this is the last moment to choose its devices.
    """
    devices.prepare()
    with deferred("seaborn", "matplotlib", "matplotlib.pyplot", "matplotlib.colors"):
        import gymnax

    return gymnax


@functools.cache
def _make(env_id: str) -> tuple[Any, Any]:
    """Makes an environment once, as gymnax compiles again for every instance."""
    # The first call may be inside a trace, whose tracers must not be cached.
    with jax.ensure_compile_time_eval():
        try:
            return _gymnax().make(env_id)
        except (URLError, ConnectionError, TimeoutError) as error:
            message = f"{env_id!r} needs the network to download what it is made of"
            raise ValueError(f"Gymnax.id: {message}: {error}") from error


@functools.cache
def _load(env_id: str, structure: tuple[tuple[str, Any], ...]) -> _Loaded:
    """Loads an environment with its static parameters, the same for all numbers."""
    env, params = _make(env_id)
    params = dataclasses.replace(params, **dict(structure))
    base = _gymnax().environments.environment.Environment
    counts = getattr(type(env), "is_truncated", None) is base.is_truncated
    limit = math.ceil(params.max_steps_in_episode) if counts else None
    actions = _action_space(env_id, env, params)
    shape = env.action_space(params).shape
    plain = getattr(type(env), "step", None) is base.step
    return _Loaded(env, params, actions, shape, limit, plain)


def _action_space(env_id: str, env: Any, params: Any) -> ActionSpace:
    """Converts an action space of gymnax."""
    with jax.ensure_compile_time_eval():
        space = env.action_space(params)
    if hasattr(space, "n"):
        return Discrete(int(space.n))
    if hasattr(space, "nvec"):
        return MultiDiscrete(tuple(int(n) for n in space.nvec))
    if not hasattr(space, "low"):
        raise ValueError(f"{env_id}: expected one space for actions, got {space!r}")
    low, high = (
        tuple(np.broadcast_to(bound, space.shape).astype(float).ravel().tolist())
        for bound in (space.low, space.high)
    )
    return Box(low, high)

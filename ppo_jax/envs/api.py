"""One protocol for environments, and gymnax ≥ 1.0 behind it.

An environment is a component: its floats are numbers like any other, so a population
can be spread over them. All functions take one environment; callers `jax.vmap`.
"""

import difflib
import functools
import math
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.typing import ArrayLike

from ppo_jax import tree
from ppo_jax.component import component, require
from ppo_jax.deferred import deferred
from ppo_jax.types import Array, Key, PyTree

NEVER = 2**31 - 1
"""`min_steps_to_truncation` of an environment that never truncates."""


class Discrete(NamedTuple):
    """Actions 0 … n − 1, an int32 scalar."""

    n: int


class MultiDiscrete(NamedTuple):
    """Several independent discrete actions, int32 `[len(nvec)]`."""

    nvec: tuple[int, ...]


class Box(NamedTuple):
    """Real actions between two bounds, float32 `[len(low)]`."""

    low: tuple[float, ...]
    high: tuple[float, ...]


ActionSpace = Discrete | MultiDiscrete | Box


class Timestep(NamedTuple):
    """What one step of an environment led to; `outcome` makes one with right types."""

    obs: PyTree
    """What the agent sees next: after the end of an episode, the next one's first."""
    final_obs: PyTree
    """What this step led to, before any reset; equal to `obs` within an episode."""
    reward: Array
    """Float32 scalar, finite."""
    terminated: Array
    """The episode ended by itself: nothing is worth anything afterwards."""
    truncated: Array
    """The episode was cut off: its value goes on in `final_obs`, if it did not end."""
    weight: Array | float = 1.0
    """Weight of this step in losses and statistics; 0 hides it."""
    cost: Array | float = 0.0
    """A cost to report, in units of its own; statistics skip one that is not finite."""
    group: Array | int = -1
    """The group that statistics count this step in; −1: a group per environment."""


def outcome(
    obs: PyTree,
    reward: ArrayLike,
    terminated: ArrayLike = False,
    truncated: ArrayLike = False,
    weight: ArrayLike = 1.0,
    cost: ArrayLike = 0.0,
    group: ArrayLike = -1,
) -> Timestep:
    """What a `transition` led to, every field a strong array of its type.

    `obs` is where the step led, and becomes `final_obs` too. All others are scalars and
    mean what they mean in `Timestep`.

    >>> step = outcome(jnp.zeros(2), reward=1, terminated=True)
    >>> step.reward.dtype.name, step.terminated.item(), step.truncated.item()
    ('float32', True, False)
    """
    obs = strong(obs)
    return Timestep(
        obs=obs,
        final_obs=obs,
        reward=jnp.asarray(reward, jnp.float32),
        terminated=jnp.asarray(terminated, bool),
        truncated=jnp.asarray(truncated, bool),
        weight=jnp.asarray(weight, jnp.float32),
        cost=jnp.asarray(cost, jnp.float32),
        group=jnp.asarray(group, jnp.int32),
    )


@component
class Env:
    """An environment: `reset`, `transition`, `action_space`; the rest follows.

    Types and shapes never change: `transition` returns observations and states like
    those of `reset`. `check` tests that, and more.

    >>> @component
    ... class Guess(Env):
    ...     prize: float = 1.0
    ...
    ...     @property
    ...     def action_space(self):
    ...         return Discrete(2)
    ...
    ...     def reset(self, key):
    ...         coin = jax.random.randint(key, (), 0, 2)
    ...         return jnp.zeros(1), coin
    ...
    ...     def transition(self, key, state, action):
    ...         reward = jnp.where(action == state, self.prize, 0.0)
    ...         return outcome(jnp.zeros(1), reward, terminated=True), state
    >>> jax.eval_shape(Guess().reset, jax.random.key(0))[0].shape
    (1,)
    """

    @property
    def action_space(self) -> ActionSpace:
        """The actions that steps take; like the next two, the same for all numbers."""
        raise NotImplementedError

    @property
    def min_steps_to_truncation(self) -> int:
        """The fewest steps from a reset to a truncation; higher saves memory.

        It may be too low, never too high; `NEVER` if there is no truncation.
        """
        return 1

    @property
    def max_episode_steps(self) -> int | None:
        """The most steps that an episode can have; None: unknown."""
        return None

    def reset(self, key: Key) -> tuple[PyTree, PyTree]:
        """Starts an episode; returns its first observation and its state."""
        raise NotImplementedError

    def transition(
        self, key: Key, state: PyTree, action: Array
    ) -> tuple[Timestep, PyTree]:
        """One step without a reset; `obs` is what it led to, whatever happened."""
        raise NotImplementedError

    def action_mask(self, state: PyTree) -> Array | None:
        """Which actions are allowed in this state; None: all of them.

        Bool `[n]`, for `MultiDiscrete` `[sum(nvec)]`: one component after the other.
        """
        del state
        return None

    def step(self, key: Key, state: PyTree, action: Array) -> tuple[Timestep, PyTree]:
        """One step; when it ends an episode, the next episode starts at once.

        An override keeps three promises: `final_obs` is from before the reset, `obs`
        and the state from after it, and the new episode is drawn with `key`.
        """
        key_step, key_reset = jax.random.split(key)
        timestep, state = self.transition(key_step, state, action)
        done = timestep.terminated | timestep.truncated
        obs, state = tree.where(done, self.reset(key_reset), (timestep.obs, state))
        return timestep._replace(obs=obs, final_obs=timestep.obs), state


@component
class Gymnax(Env):
    """An environment of gymnax ≥ 1.0; make yours known with `gymnax.register`.

    Steps may say more in `info`: `weight`, `cost` and `group`, as in `Timestep`. An
    environment with a method `action_mask(state, params)` has its actions masked.

    Raises:
        ValueError: At construction, for an id that gymnax does not know.
    """

    id: str = "CartPole-v1"

    def validate(self) -> None:
        """Raises a `ValueError` for an unknown id."""
        known = _gymnax().registered_envs
        if self.id not in known:
            close = difflib.get_close_matches(self.id, known, n=1, cutoff=0.0)
            expected = f"an id that gymnax knows; the closest is {close[0]!r}"
            require(False, "Gymnax.id", self.id, expected)

    @property
    def action_space(self) -> ActionSpace:
        return _load(self.id).action_space

    @property
    def min_steps_to_truncation(self) -> int:
        return _load(self.id).limit or 1

    @property
    def max_episode_steps(self) -> int | None:
        return _load(self.id).limit

    def reset(self, key: Key) -> tuple[PyTree, PyTree]:
        env, params, *_ = _load(self.id)
        return strong(env.reset(key, params))

    def step(self, key: Key, state: PyTree, action: Array) -> tuple[Timestep, PyTree]:
        env, params, *_ = _load(self.id)
        action = action.reshape(env.action_space(params).shape)
        obs, state, reward, terminated, truncated, info = env.step(
            key, state, action, params
        )
        said = {"reward": reward, "terminated": terminated, "truncated": truncated}
        said |= {k: info[k] for k in ("weight", "cost", "group") if k in info}
        scalars = {name: jnp.reshape(value, ()) for name, value in said.items()}
        timestep = outcome(info["final_observation"], **scalars)
        return timestep._replace(obs=strong(obs)), strong(state)

    def action_mask(self, state: PyTree) -> Array | None:
        env, params, *_ = _load(self.id)
        masks = getattr(env, "action_mask", None)
        return None if masks is None else jnp.asarray(masks(state, params), bool)


def make(env: Env | str) -> Env:
    """An environment from a gymnax id; an `Env` is returned as it is.

    Raises:
        ValueError: If gymnax does not know the id; the message names the closest one.
        TypeError: If it is neither an id nor an `Env`.

    >>> make("CartPole-v1").action_space
    Discrete(n=2)
    """
    if isinstance(env, str):
        return Gymnax(env)
    if not isinstance(env, Env):
        raise TypeError(
            f"env: expected an Env or a gymnax id, got {env!r}; an environment of "
            "gymnax gets an id with gymnax.register"
        )
    return env


def strong(state: PyTree) -> PyTree:
    """Arrays without weak types, which would make a loop's carry change its type.

    >>> strong({"time": 0})["time"].weak_type
    False
    """

    def convert(x):
        x = jnp.asarray(x)
        if jnp.issubdtype(x.dtype, jax.dtypes.extended):  # Keys are never weak.
            return x
        return jax.lax.convert_element_type(x, x.dtype)

    return jax.tree.map(convert, state)


class _Loaded(NamedTuple):
    env: Any
    params: Any
    action_space: ActionSpace
    limit: int | None  # Steps to truncation, where gymnax counts them.


@functools.cache
def _gymnax() -> Any:
    """Imports gymnax at first use, without what only its pictures need.

    Seaborn, with pandas, and pyplot would take 100 MiB and most of the time.
    """
    with deferred("seaborn", "matplotlib.pyplot"):
        import gymnax

    return gymnax


@functools.cache
def _load(env_id: str) -> _Loaded:
    """Makes an environment once: gymnax compiles anew for every instance."""
    gymnax = _gymnax()
    base = gymnax.environments.environment.Environment
    # The first call may be inside a trace, whose tracers must not be cached.
    with jax.ensure_compile_time_eval():
        env, params = gymnax.make(env_id)
        space = _action_space(env_id, env.action_space(params))
    counts = getattr(type(env), "is_truncated", None) is base.is_truncated
    limit = math.ceil(params.max_steps_in_episode) if counts else None
    return _Loaded(env, params, space, limit)


def _action_space(env_id: str, space: Any) -> ActionSpace:
    """Translates an action space of gymnax."""
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

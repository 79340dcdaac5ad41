"""Environments around environments.

A wrapper uses its environment through `reset` and `step`, which resets by itself. So it
can be put around any environment, other wrappers included.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from ppo_jax.arrays import tree
from ppo_jax.component import component, converted, require
from ppo_jax.component.bounds import Count
from ppo_jax.envs.env import ActionSpace, Env, Step
from ppo_jax.envs.suites import make
from ppo_jax.types import Array, Key, Metrics, PyTree


def steppable(env: Env | str) -> Env:
    """Makes an environment as `make` does, if programs can take its steps.

    Raises:
        ValueError: If simulators on the host take its steps.
    """
    env = make(env)
    expected = (
        "an environment that programs step; around one that simulators on the host "
        "step goes a wrapper of theirs, registered with it"
    )
    require(not env.simulated, "env", env, expected)
    return env


@component
class Wrapper(Env):
    """Passes everything on to `env`, an `Env` or the id of one; a base to start from.

    A subclass with a state of its own is a `Stateful`. One that overrides `reset` also
    overrides `restart`, if the episodes of `env` depend on those before: without it,
    each starts by `reset`.
    """

    env: Env = converted(steppable)

    @property
    def action_space(self) -> ActionSpace:
        return self.env.action_space

    @property
    def min_steps_to_truncation(self) -> int:
        return self.env.min_steps_to_truncation

    @property
    def max_episode_steps(self) -> int | None:
        return self.env.max_episode_steps

    @property
    def acts_late(self) -> bool:
        return self.env.acts_late

    def reset(self, key: Key) -> tuple[PyTree, PyTree]:
        return self.env.reset(key)

    def step(self, key: Key, state: PyTree, action: Array) -> Step:
        return self.env.step(key, state, action)

    def restart(self, key: Key, state: PyTree) -> tuple[PyTree, PyTree]:
        if type(self).reset is not Wrapper.reset:
            return self.reset(key)
        return self.env.restart(key, state)

    def renew(self, key: Key, state: PyTree) -> PyTree:
        return self.env.renew(key, state)

    def metrics(self, state: PyTree) -> Metrics:
        return self.env.metrics(state)

    def action_mask(self, state: PyTree) -> Array | None:
        return self.env.action_mask(state)

    def render(self, state: PyTree) -> np.ndarray:
        return self.env.render(state)


@component
class Stateful(Wrapper):
    """A wrapper with a state of its own: a named tuple whose `env` is that of `env`."""

    def renew(self, key: Key, state: PyTree) -> PyTree:
        return state._replace(env=self.env.renew(key, state.env))

    def metrics(self, state: PyTree) -> Metrics:
        return self.env.metrics(state.env)

    def action_mask(self, state: PyTree) -> Array | None:
        return self.env.action_mask(state.env)

    def render(self, state: PyTree) -> np.ndarray:
        return self.env.render(state.env)


class TimeLimitState(NamedTuple):
    """State of `TimeLimit`."""

    env: PyTree
    steps: Array
    """Steps of this episode so far, int32 scalar."""


@component
class TimeLimit(Stateful):
    """Truncates an episode after `limit` steps, which it counts itself.

    An episode that ends by itself at its last step is terminated and truncated; one
    that `env` truncates earlier is truncated then.

    Raises:
        ValueError: At construction, if the limit is below 1.

    >>> from ppo_jax.envs.probes import RecallCue
    >>> TimeLimit(RecallCue(), 3).max_episode_steps
    3
    """

    limit: Count

    @property
    def min_steps_to_truncation(self) -> int:
        return min(self.limit, self.env.min_steps_to_truncation)

    @property
    def max_episode_steps(self) -> int | None:
        return min(self.limit, self.env.max_episode_steps or self.limit)

    def reset(self, key: Key) -> tuple[PyTree, PyTree]:
        obs, state = self.env.reset(key)
        return obs, TimeLimitState(state, jnp.zeros((), jnp.int32))

    def step(self, key: Key, state: PyTree, action: Array) -> Step:
        key_step, key_reset = jax.random.split(key)
        timestep, inner = self.env.step(key_step, state.env, action)
        steps = state.steps + 1
        ended = timestep.terminated | timestep.truncated  # `env` has restarted then.
        over = steps >= self.limit
        obs, inner = tree.where(
            over & ~ended, self.env.restart(key_reset, inner), (timestep.obs, inner)
        )
        timestep = timestep._replace(obs=obs, truncated=timestep.truncated | over)
        return timestep, TimeLimitState(inner, jnp.where(ended | over, 0, steps))

    def restart(self, key: Key, state: PyTree) -> tuple[PyTree, PyTree]:
        obs, inner = self.env.restart(key, state.env)
        return obs, TimeLimitState(inner, jnp.zeros((), jnp.int32))


@component
class MaskObservation(Wrapper):
    """Keeps the named components of a flat observation, in the order given.

    CartPole without its velocities, `MaskObservation("CartPole-v1", (0, 2))`, and
    Pendulum without its own, `MaskObservation("Pendulum-v1", (0, 1))`, need a memory.

    Raises:
        ValueError: At construction, unless observations are `[D]` and `keep` names
            some of their D components, each at most once.

    >>> from ppo_jax.envs.probes import RecallCue
    >>> obs, _ = MaskObservation(RecallCue(num_cues=3), (3,)).reset(jax.random.key(0))
    >>> obs.tolist()
    [0.0]
    """

    keep: tuple[int, ...]

    def validate(self) -> None:
        """Raises a `ValueError` for components that the observation does not have."""
        obs, _ = jax.eval_shape(self.env.reset, jax.random.key(0))
        flat = hasattr(obs, "shape") and len(obs.shape) == 1
        require(flat, "MaskObservation.env", self.env, "observations of one axis")
        size = obs.shape[0]
        expected = f"distinct components from 0 to {size - 1}, at least one"
        distinct = 0 < len(self.keep) == len(set(self.keep))
        ok = distinct and all(0 <= i < size for i in self.keep)
        require(ok, "MaskObservation.keep", self.keep, expected)

    def reset(self, key: Key) -> tuple[PyTree, PyTree]:
        obs, state = self.env.reset(key)
        return self._kept(obs), state

    def step(self, key: Key, state: PyTree, action: Array) -> Step:
        timestep, state = self.env.step(key, state, action)
        obs, final_obs = self._kept(timestep.obs), self._kept(timestep.final_obs)
        return timestep._replace(obs=obs, final_obs=final_obs), state

    def restart(self, key: Key, state: PyTree) -> tuple[PyTree, PyTree]:
        obs, state = self.env.restart(key, state)
        return self._kept(obs), state

    def _kept(self, obs: Array) -> Array:
        return obs[jnp.array(self.keep)]


class FrameStackState(NamedTuple):
    """State of `FrameStack`."""

    env: PyTree
    frames: PyTree
    """The last observations, the newest one last, `[size, ...]`."""


@component
class FrameStack(Stateful):
    """Shows the last `size` observations of an episode at once, the newest one last.

    They follow each other along the last axis: `[D]` becomes `[size · D]`, a grid
    `[H, W, C]` becomes `[H, W, size · C]` and a number `[size]`. Before there were as
    many, the first one stands in for those that are missing (as in gymnasium). Rollouts
    store all of it: a memory costs less, and remembers for longer.

    Raises:
        ValueError: At construction, if the size is below 1.

    >>> from ppo_jax.envs.probes import Accumulator
    >>> env = FrameStack(Accumulator(), 3)
    >>> obs, state = env.reset(jax.random.key(0))
    >>> timestep, _ = env.step(jax.random.key(0), state, jnp.array(1))
    >>> obs.tolist(), timestep.obs.tolist()
    ([1.0, 1.0, 1.0], [1.0, 1.0, 2.0])
    """

    size: Count

    def reset(self, key: Key) -> tuple[PyTree, PyTree]:
        return self._begun(*self.env.reset(key))

    def step(self, key: Key, state: PyTree, action: Array) -> Step:
        timestep, inner = self.env.step(key, state.env, action)
        ended = timestep.terminated | timestep.truncated
        frames = jax.tree.map(
            lambda frames, new: jnp.concatenate([frames[1:], new[None]]),
            state.frames,
            timestep.final_obs,
        )
        final_obs = _side_by_side(frames)
        obs, state = tree.where(
            ended,
            self._begun(timestep.obs, inner),
            (final_obs, FrameStackState(inner, frames)),
        )
        return timestep._replace(obs=obs, final_obs=final_obs), state

    def restart(self, key: Key, state: PyTree) -> tuple[PyTree, PyTree]:
        return self._begun(*self.env.restart(key, state.env))

    def _begun(self, obs: PyTree, inner: PyTree) -> tuple[PyTree, PyTree]:
        frames = jax.tree.map(lambda x: jnp.stack([x] * self.size), obs)
        return _side_by_side(frames), FrameStackState(inner, frames)


def _side_by_side(frames: PyTree) -> PyTree:
    """Joins observations `[size, ..., D]` along their last axis."""

    def joined(x):
        if x.ndim == 1:
            return x
        return jnp.moveaxis(x, 0, -2).reshape(*x.shape[1:-1], -1)

    return jax.tree.map(joined, frames)

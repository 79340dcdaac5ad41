"""Starts that are drawn ahead, for environments whose resets are costly."""

from typing import NamedTuple

import jax
import jax.numpy as jnp

from ppo_jax.arrays import tree
from ppo_jax.component import component, require
from ppo_jax.component.bounds import Count
from ppo_jax.envs.env import Env, Step
from ppo_jax.envs.wrappers import Stateful
from ppo_jax.types import Array, Key, Metrics, PyTree


class PoolState(NamedTuple):
    """State of `ResetPool`."""

    env: PyTree
    starts: tuple[PyTree, PyTree]
    """Observations and states after resets, leaves `[size, ...]`."""
    taken: Array
    """Episodes that began with a start since starts were drawn, int32 scalar."""


@component
class ResetPool(Stateful):
    """Draws `size` starts before every rollout; episodes begin with them, in order.

    Mapped over environments, a step computes a reset whether or not an episode ends. In
    the steps of a pool there is none. It costs memory: `size` observations and states.

    Starts are independent draws of `reset`, as without a pool, as long as no more than
    `size` episodes of an environment end in a rollout. Further episodes begin with the
    first start again, then the second, and so on: `rollout/reused_starts` counts them.
    Then episodes of a rollout resemble each other, gradients and statistics come from
    fewer starts than they seem to, and starts of short episodes, which recur more
    often, count for more.

    Wrappers go around the pool. `TimeLimit` takes its starts from the pool, unless
    between them is a wrapper without a `restart`, by which it fills a pool every step.
    Tell `check` that `taken` outlives episodes: `check(env, carried=("state.taken",))`.

    Raises:
        ValueError: At construction, if `env` has no `transition`, or a `step` or
            `restart` of its own as wrappers do, or if `size` is below 1.

    >>> from ppo_jax.envs.probes import RecallCue
    >>> env = ResetPool(RecallCue(), size=3)
    >>> obs, state = env.reset(jax.random.key(0))
    >>> obs.shape, state.starts[0].shape
    ((3,), (3, 3))
    """

    size: Count
    """Starts per environment and rollout."""

    def validate(self) -> None:
        """Raises a `ValueError` for an environment that begins episodes otherwise."""
        expected = (
            "an environment with a `transition`, and no `step` of its own; wrappers go "
            "around the pool"
        )
        require(self.env.has_transition, "ResetPool.env", self.env, expected)
        expected = "an environment whose episodes begin by `reset`, without a `restart`"
        alike = type(self.env).restart is Env.restart
        require(alike, "ResetPool.env", self.env, expected)

    def reset(self, key: Key) -> tuple[PyTree, PyTree]:
        key_env, key_starts = jax.random.split(key)
        obs, inner = self.env.reset(key_env)
        return obs, self._filled(key_starts, inner)

    def transition(self, key: Key, state: PyTree, action: Array) -> Step:
        timestep, inner = self.env.transition(key, state.env, action)
        return timestep, state._replace(env=inner)

    def restart(self, key: Key, state: PyTree) -> tuple[PyTree, PyTree]:
        obs, inner = tree.take(state.starts, state.taken % self.size)
        return obs, state._replace(env=inner, taken=state.taken + 1)

    def step(self, key: Key, state: PyTree, action: Array) -> Step:
        return Env.step(self, key, state, action)

    def renew(self, key: Key, state: PyTree) -> PyTree:
        key_env, key_starts = jax.random.split(key)
        return self._filled(key_starts, self.env.renew(key_env, state.env))

    def metrics(self, state: PyTree) -> Metrics:
        reused = jnp.maximum(state.taken - self.size, 0)
        return self.env.metrics(state.env) | {"rollout/reused_starts": reused}

    def _filled(self, key: Key, inner: PyTree) -> PoolState:
        """Returns a pool of new starts around the episode that is under way."""
        starts = jax.vmap(self.env.reset)(jax.random.split(key, self.size))
        return PoolState(inner, starts, jnp.zeros((), jnp.int32))

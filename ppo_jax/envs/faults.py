"""Faults on purpose, to test what survives an environment that breaks."""

from typing import Annotated, NamedTuple

import jax
import jax.numpy as jnp

from ppo_jax.component import component
from ppo_jax.component.bounds import Bound, Count, Natural
from ppo_jax.envs.env import NEVER, Step
from ppo_jax.envs.wrappers import Stateful
from ppo_jax.types import Array, Key, PyTree


class FaultyState(NamedTuple):
    """State of `Faulty`; traced, so that one environment of many can be struck."""

    env: PyTree
    clock: Array
    """Steps since the last call of `reset`, int32 scalar; new episodes of `step` do not
    restart it."""
    start: Array
    """The clock's time at which the fault begins, int32 scalar; `NEVER`: no fault."""


@component
class Faulty(Stateful):
    """Adds NaN, ∞ or any number to the results of another environment.

    While the fault lasts, `reward` is added to the reward, `weight` to the weight,
    `obs` to every float of the observation and `state` to every float of the state. A
    NaN state stays NaN until `reset` is called, unless the environment's episodes end
    all the same.

    The choice of environments that are struck is data. At every call of `reset`, the
    number `rate` decides, which may differ between members. For exactly one
    environment, set `rate` to 0 and name it in the state:
    `s._replace(start=s.start.at[member, env].set(5))`; once reset it is healthy.

    Known answer: the results of all other environments are the same, bit for bit, as
    without the fault.

    >>> from ppo_jax.envs.probes import TimeLimitChain
    >>> env = Faulty(TimeLimitChain(), reward=jnp.nan, after=0)
    >>> key = jax.random.key(0)
    >>> step, _ = env.step(key, env.reset(key)[1], jnp.array(0))
    >>> step.reward.item()
    nan
    """

    reward: float = 0.0
    weight: float = 0.0
    obs: float = 0.0
    state: float = 0.0
    rate: Annotated[float, Bound("a share in [0, 1]", lambda x: 0 <= x <= 1)] = 1.0
    """Share of resets after which the fault occurs."""
    after: Natural = 3
    """Healthy steps before the fault."""
    steps: Count = 1
    """Steps that the fault lasts; `NEVER`: it never stops."""

    def reset(self, key: Key) -> tuple[PyTree, PyTree]:
        key_env, key_struck = jax.random.split(key)
        obs, state = self.env.reset(key_env)
        struck = jax.random.uniform(key_struck) < self.rate
        start = jnp.where(struck, self.after, NEVER).astype(jnp.int32)
        return obs, FaultyState(state, jnp.zeros((), jnp.int32), start)

    def step(self, key: Key, state: PyTree, action: Array) -> Step:
        timestep, inner = self.env.step(key, state.env, action)
        age = state.clock - state.start
        ill = (age >= 0) & (age < self.steps)

        def hurt(values, amount):
            return jax.tree.map(lambda x: _add(x, amount, ill), values)

        timestep = timestep._replace(
            obs=hurt(timestep.obs, self.obs),
            final_obs=hurt(timestep.final_obs, self.obs),
            reward=hurt(timestep.reward, self.reward),
            weight=hurt(jnp.asarray(timestep.weight), self.weight),
        )
        inner = hurt(inner, self.state)
        return timestep, FaultyState(inner, state.clock + 1, state.start)

    def restart(self, key: Key, state: PyTree) -> tuple[PyTree, PyTree]:
        obs, inner = self.env.restart(key, state.env)
        return obs, state._replace(env=inner)


def _add(x: Array, amount: Array | float, ill: Array) -> Array:
    """Adds to floats where `ill`; integers, truth values and keys stay as they are."""
    if not jnp.issubdtype(x.dtype, jnp.floating):
        return x
    return jnp.where(ill, x + jnp.asarray(amount, x.dtype), x)

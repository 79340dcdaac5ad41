"""A healthy environment, and others that differ from it in one thing."""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import pytest

from ppo_jax import envs
from ppo_jax.component import component


class Place(NamedTuple):
    at: jax.Array
    time: jax.Array


@component
class Walk(envs.Env):
    """A healthy walk from a random place, over after four steps."""

    stride: float = 0.5

    @property
    def action_space(self):
        return envs.Discrete(3)

    @property
    def min_steps_to_truncation(self):
        return 4

    @property
    def max_episode_steps(self):
        return 4

    def reset(self, key):
        state = Place(jax.random.uniform(key), jnp.zeros((), jnp.int32))
        return state.at[None], state

    def transition(self, key, state, action):
        state = Place(state.at + self.stride, state.time + 1)
        timestep = envs.outcome(state.at[None], 1.0, truncated=state.time >= 4)
        return timestep, state


def changed(**fields):
    """Returns a `Walk` whose transition changes some fields of the timestep."""

    @component
    class Changed(Walk):
        def transition(self, key, state, action):
            timestep, state = super().transition(key, state, action)
            new = {name: change(timestep) for name, change in fields.items()}
            return timestep._replace(**new), state

    return Changed()


def moved(change):
    """Returns a `Walk` whose transition returns another state."""

    @component
    class Moved(Walk):
        def transition(self, key, state, action):
            timestep, state = super().transition(key, state, action)
            return timestep, change(state)

    return Moved()


def stepped(change):
    """Returns a `Walk` whose step returns another result.

    The result is `change(env, key, before, (timestep, after))`, all of one step.
    """

    @component
    class Stepped(Walk):
        def step(self, key, state, action):
            return change(self, key, state, super().step(key, state, action))

    return Stepped()


def having(**members):
    """Returns a `Walk` with other methods and properties."""
    return component(type("Having", (Walk,), {"__module__": __name__, **members}))()


def fact(value):
    return property(lambda self: value)


def findings(env, **kwargs):
    with pytest.raises(ValueError) as caught:
        envs.check(env, **{"steps": 32, **kwargs})
    return str(caught.value)

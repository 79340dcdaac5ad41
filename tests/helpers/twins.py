"""The walks of `gyms` as environments that are stepped in programs."""

import jax.numpy as jnp
from gyms import FAR, FENCE, LIMIT

from ppo_jax import envs
from ppo_jax.component import component


@component
class Ours(envs.Env):
    """The walk of `gyms`, without faults."""

    @property
    def action_space(self):
        return envs.Discrete(2)

    @property
    def min_steps_to_truncation(self):
        return LIMIT

    @property
    def max_episode_steps(self):
        return LIMIT

    def reset(self, key):
        state = jnp.zeros(2)
        return state, state

    def transition(self, key, state, action):
        at = 0.5 * state[0] + 2 * action - 1
        state = jnp.stack([at, state[1] + 0.125])
        truncated = state[1] >= LIMIT / 8
        return envs.outcome(state, at, jnp.abs(at) > FAR, truncated), state


@component
class OursFenced(Ours):
    """The fenced walk of `gyms`, without faults."""

    def transition(self, key, state, action):
        timestep, state = super().transition(key, state, action)
        return timestep._replace(cost=jnp.abs(state[0])), state

    def action_mask(self, state):
        return jnp.stack([True, state[0] <= FENCE])

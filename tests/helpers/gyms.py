"""A walk as an environment of gymnasium and, for programs, as one of ours."""

import os
import time

import gymnasium
import jax.numpy as jnp
import numpy as np

from ppo_jax import envs
from ppo_jax.component import component

LIMIT, FAR = 6, 1.6
RAISES, DIES, NAN_REWARD, NAN_OBS, GROWS, HANGS, NO_NUMBER = range(1, 8)
ID = "gymnasium/Walk-v0"


class Walk(gymnasium.Env):
    """Half of where it was, and a step; it breaks after 9 steps, if it is to.

    Numbers are exact in float32.
    """

    observation_space = gymnasium.spaces.Box(-2.0, 2.0, (2,), np.float32)
    action_space = gymnasium.spaces.Discrete(2)

    def __init__(self, fault: float = 0.0, name: str = "walk", bonus: float = 0.0):
        self.fault, self.name, self.bonus, self.clock = fault, name, bonus, 0

    def reset(self, seed=None, options=None):
        super().reset(seed=seed)
        self.at, self.time = np.float32(0), 0
        return self.seen(), {}

    def seen(self):
        return np.array([self.at, self.time / 8], np.float32)

    def step(self, action):
        self.clock, self.time = self.clock + 1, self.time + 1
        self.at = np.float32(0.5) * self.at + np.float32(2 * action - 1)
        reward, obs = self.at + np.float32(self.bonus), self.seen()
        if self.clock > 9:
            obs, reward = self.broken(obs, reward)
        return obs, reward, bool(abs(self.at) > FAR), False, {}

    def broken(self, obs, reward):
        if self.fault == RAISES:
            raise RuntimeError("the floor is wet")
        if self.fault == DIES:
            os.abort()
        if self.fault == HANGS:
            time.sleep(1000)
        if self.fault == NAN_REWARD:
            return obs, np.nan
        if self.fault == NAN_OBS:
            return obs * np.nan, reward
        if self.fault == GROWS:
            return np.append(obs, 0), reward
        return obs, "much" if self.fault == NO_NUMBER else reward


@component
class Ours(envs.Env):
    """The same walk, without faults."""

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


if "Walk-v0" not in gymnasium.registry:
    gymnasium.register("Walk-v0", entry_point="gyms:Walk", max_episode_steps=LIMIT)

"""Walks, and ways with tolls, as environments of gymnasium.

The processes of simulators import this without JAX, so that they start at once.
"""

import os
import time

import gymnasium
import numpy as np

LIMIT, FAR, FENCE = 6, 1.6, 1.4
RAISES, DIES, NAN_REWARD, NAN_OBS, GROWS, HANGS, NO_NUMBER = range(1, 8)
SAYS_NOTHING, SAYS_MORE, FORBIDS_ALL, COSTS_WORDS = range(8, 12)


TAXI = next(f"gymnasium/{x}" for x in gymnasium.registry if x.startswith("Taxi-"))
"""Name of Taxi, in the version that is installed."""


class Walk(gymnasium.Env):
    """A walk that halves its place and adds a step; a `fault` breaks it after 9 steps.

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


class Given(Walk):
    """A walk whose steps are what it is given."""

    def __init__(self, how):
        super().__init__()
        self.step = how


class Fenced(Walk):
    """A walk with a fence to the right; the cost is the distance from the middle."""

    def info(self):
        found = {"action_mask": np.array([1, self.at <= FENCE], np.int8)}
        if self.clock > 9:
            found |= MISSAID.get(self.fault, {})
        return {k: x for k, x in found.items() if x is not None}

    def reset(self, seed=None, options=None):
        obs, _ = super().reset(seed=seed)
        return obs, self.info()

    def step(self, action):
        if not self.info()["action_mask"][action]:
            raise RuntimeError("over the fence")
        obs, reward, terminated, truncated, _ = super().step(action)
        info = {} if terminated else self.info()  # Where it ended, all is forbidden.
        return obs, reward, terminated, truncated, {"cost": abs(self.at)} | info


MISSAID = {
    SAYS_NOTHING: {"action_mask": None},
    SAYS_MORE: {"action_mask": np.ones(3)},
    FORBIDS_ALL: {"action_mask": np.zeros(2)},
    COSTS_WORDS: {"cost": "much"},
}


class Reused(Walk):
    """A walk that shows one array, into which all such walks write."""

    array = np.zeros(2, np.float32)

    def seen(self):
        self.array[:] = super().seen()
        return self.array


class Whole(Walk):
    """A walk by −1, 0 or 1."""

    action_space = gymnasium.spaces.Box(-1, 1, (1,), np.int8)


class Stuck(Walk):
    """A walk that cannot be closed after its first step."""

    def close(self):
        if self.clock:
            raise RuntimeError("the door is stuck")


class Loud(Walk):
    """A walk that says a lot, and ends without a new line."""

    def step(self, action):
        print("é" * 9000, end=f"\nstep {self.time}")
        return super().step(action)


class Shown(Walk):
    """A walk from a random place, whose pictures show the time."""

    metadata = {"render_modes": ["rgb_array"]}  # noqa: RUF012

    def __init__(self, render_mode=None):
        super().__init__()
        self.render_mode = render_mode

    def reset(self, seed=None, options=None):
        _, info = super().reset(seed=seed)
        self.at = np.float32(self.np_random.uniform(-1, 1))
        return self.seen(), info

    def render(self):
        return np.full((1, 1, 3), 8 * self.time, np.uint8)


class Tolls(gymnasium.Env):
    """A short way that costs a toll, a long one, and one that is shut now and then.

    Whoever takes it while it is shut is lost.
    """

    observation_space = gymnasium.spaces.Box(0.0, 1.0, (1,))
    action_space = gymnasium.spaces.Discrete(3)

    def reset(self, seed=None, options=None):
        super().reset(seed=seed)
        return self.seen()

    def seen(self):
        self.open = bool(self.np_random.integers(2))
        return np.ones(1), {"action_mask": np.array([1, 1, self.open], np.int8)}

    def step(self, action):
        if action == 2 and not self.open:
            raise RuntimeError("lost on a way that was shut")
        obs, info = self.seen()
        reward, toll = [(1.0, 1.0), (0.5, 0.0), (0.0, 0.0)][action]
        return obs, reward, False, False, info | {"cost": toll}


NAMES = "Walk", "Fenced", "Reused", "Whole", "Stuck", "Loud", "Shown"
STEPS = dict.fromkeys(NAMES, LIMIT)
for name, most in (STEPS | {"Tolls": 4}).items():
    if f"{name}-v0" not in gymnasium.registry:
        entry = {"entry_point": f"gyms:{name}", "max_episode_steps": most}
        gymnasium.register(f"{name}-v0", **entry)

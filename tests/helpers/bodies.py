"""Simulations that are stepped by hand, of a body that falls as in textbooks."""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from ppo_jax.component import component
from ppo_jax.config import Config
from ppo_jax.critics import Scalar, ValueDist
from ppo_jax.envs import parameters
from ppo_jax.envs.physics import Bodies, Simulation, changed

STONE = {
    "start_height": float,
    "episode_length": int,
    "action_repeat": int,
    "painted": float,
}


class World(NamedTuple):
    """The world in which a stone falls."""

    pull: Any = 10.0

    def tree_replace(self, values):
        return self._replace(**values)


class Falling(NamedTuple):
    """The state of a simulation, as suites have it."""

    obs: Any
    reward: Any
    done: Any
    info: dict
    metrics: dict

    def replace(self, **values):
        return self._replace(**values)


class Fall:
    """A stone that is thrown up from some height, until it is below the ground.

    The action is an acceleration; the reward is the height.
    """

    action_size = 1

    def __init__(self):
        self.world, self.start_height, self.painted = World(), 1.0, 0.0

    def reset(self, rng):
        speed = jax.random.uniform(rng)
        seen = {"height": self.start_height + jnp.zeros(1), "speed": speed[None]}
        info = {"time": 0.0, "touching": jnp.zeros((0, 3))}
        return Falling(seen, 0, 0.0, info, {"energy": 0.0})

    def step(self, state, action):
        speed = state.obs["speed"] + 0.1 * (action - self.world.pull)
        height = state.obs["height"] + 0.1 * speed
        state.metrics["energy"] = speed[0] ** 2  # As suites do.
        info = state.info | {"time": state.info["time"] + 0.1}
        done = jnp.where(height[0] < 0, 1.0, 0.0)
        seen = {"height": height, "speed": speed}
        return Falling(seen, height[0], done, info, state.metrics)


FALL = Fall()
POWERS = {"gravity": {"pull": 1}, "friction": {}, "mass": {}}


@component
class Stone(Bodies):
    """The stone as an environment."""

    def _types(self):
        return STONE

    def _load(self):
        given = dict(parameters.structure(self.params))
        return Simulation(
            FALL, given.get("episode_length", 4), given.get("action_repeat", 1)
        )

    def _made(self, drawn):
        world = self.physics.world(FALL.world, drawn, POWERS)
        numbers = {
            name: value
            for name, value in parameters.given(self.params).items()
            if isinstance(FALL.__dict__.get(name), float)
        }
        return changed(FALL, world=world, **numbers)


@component
class Summing(Config):
    """An experiment whose values are sums of observations."""

    def build(self):
        network = super().build()

        def apply(*args, **given):
            out = network.apply(*args, **given)
            total = sum(x.sum(axis=-1) for x in jax.tree.leaves(args[2]))
            return out._replace(value=ValueDist(total[..., None, None], Scalar()))

        return network._replace(apply=apply)


def by_hand(env, simulation, keys, actions):
    """Takes steps of a simulation one by one, without any wrapper.

    Args:
        env: Gives the length of episodes, and the repeats of an action.
        simulation: The suite's own simulation.
        keys: Keys of the first reset and of all steps.
        actions: `[T, A]`.

    Returns:
        Observations before and after steps, rewards, whether episodes ended by
        themselves and whether they were cut off; `[T, ...]`.
    """
    loaded = env._load()
    reset, step = jax.jit(simulation.reset), jax.jit(simulation.step)
    state, age, said = reset(_suites(keys[0])), 0, []
    for key, action in zip(keys[1:], actions, strict=True):
        before, reward = state.obs, np.float32(0)
        for _ in range(loaded.action_repeat):
            state = step(state, action)
            reward += np.float32(state.reward)
            if state.done:
                break
        age += 1
        cut = age * loaded.action_repeat >= loaded.episode_length
        said.append((before, state.obs, reward, bool(state.done), cut))
        if state.done or cut:
            state, age = reset(_suites(jax.random.split(key)[1])), 0
    return jax.tree.map(lambda *x: np.stack(x), *said)


def _suites(key):
    """Returns the key that a reset of the suite gets."""
    return jax.random.key_data(jax.random.split(key)[0])


def played(env, keys, actions):
    """Returns the same as `by_hand`, by stepping an environment."""

    return _played(env, keys, actions)


@jax.jit
def _played(env, keys, actions):
    def step(carry, inputs):
        obs, state = carry
        timestep, state = env.step(inputs[0], state, inputs[1])
        ends = timestep.terminated, timestep.truncated
        said = obs, timestep.final_obs, timestep.reward, *ends
        return (timestep.obs, state), said

    return jax.lax.scan(step, env.reset(keys[0]), (keys[1:], actions))[1]

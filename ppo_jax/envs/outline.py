"""Stand-ins for environments on the host, with which programs can be traced."""

import jax
import jax.numpy as jnp

from ppo_jax.component import component
from ppo_jax.envs.env import ActionSpace, Env, Step, outcome
from ppo_jax.types import Array, Key, PyTree

STEPS = 100
"""Steps of an episode, if the environment has no `max_episode_steps`."""


@component
class Outline(Env):
    """A stand-in with the shapes of an environment, and with random observations.

    Attributes:
        of: The environment.
    """

    of: Env

    @property
    def action_space(self) -> ActionSpace:
        return self.of.action_space

    @property
    def min_steps_to_truncation(self) -> int:
        return self.of.min_steps_to_truncation

    @property
    def max_episode_steps(self) -> int | None:
        return self.of.max_episode_steps

    def reset(self, key: Key) -> tuple[PyTree, PyTree]:
        shapes, _ = jax.eval_shape(self.of.reset, key)
        leaves, structure = jax.tree.flatten(shapes)
        keys = jax.random.split(key, len(leaves))
        made = [
            jax.random.normal(key, like.shape).astype(like.dtype)
            for key, like in zip(keys, leaves, strict=True)
        ]
        return structure.unflatten(made), jnp.zeros((), jnp.int32)

    def action_mask(self, state: PyTree) -> Array | None:
        _, inner = jax.eval_shape(self.of.reset, jax.random.key(0))
        like = jax.eval_shape(self.of.action_mask, inner)
        return None if like is None else jnp.ones(like.shape, bool)

    def transition(self, key: Key, state: PyTree, action: Array) -> Step:
        obs, _ = self.reset(key)
        reward, steps = jax.random.normal(key), state + 1
        over = steps == (self.max_episode_steps or STEPS)
        return outcome(obs, reward, truncated=over), steps

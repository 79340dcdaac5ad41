"""Agents that never learned: random parameters, and moments that matter."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from ppo_jax.component import as_arrays, component
from ppo_jax.config import Config
from ppo_jax.envs.env import Discrete, Env, outcome
from ppo_jax.normalization import observations
from ppo_jax.state import Learner

LONGEST = 40
ONE = ((None, (3,)),)
KINDS = {"count": jnp.dtype("int32"), "short": jnp.dtype("bfloat16")}
"""Types of sights by their names; float32 otherwise."""


@component
class Sights(Env):
    """Random sights, in episodes of random lengths; rewards depend on actions.

    A sight is a single array without a name, or several by name, of `KINDS`; a share of
    those that are not whole numbers is NaN.
    """

    sights: Any = ONE
    space: Any = Discrete(3)
    forbids: bool = False
    broken: float = 0.0

    @property
    def action_space(self):
        return self.space

    @property
    def max_episode_steps(self):
        return LONGEST

    def reset(self, key):
        key_obs, key_mask = jax.random.split(key)
        return self._sight(key_obs), self._legal(key_mask)

    def transition(self, key, state, action):
        keys = jax.random.split(key, 4)
        over = jax.random.bernoulli(keys[0], 0.2)
        luck = jax.random.normal(keys[1], jnp.shape(action))
        obs = self._sight(keys[2])
        return outcome(obs, jnp.sum(action * luck), over), self._legal(keys[3])

    def action_mask(self, state):
        return state if self.forbids else None

    def _legal(self, key):
        if not self.forbids:
            return ()
        parts = [jax.random.bernoulli(key, 0.5, (n,)) for n in self.space.nvec]
        return jnp.concatenate([part.at[0].set(True) for part in parts])

    def _sight(self, key):
        gone = jax.random.bernoulli(key, self.broken)
        drawn = {}
        for name, shape in self.sights:
            x = 3 * jax.random.normal(key, shape) + 1
            x = x if name == "count" else jnp.where(gone, jnp.nan, x)
            drawn[name] = x.astype(KINDS.get(name, jnp.float32))
        return drawn.get(None, drawn)


def agent(env, seed=0, obs_clip=None, **network) -> Learner:
    """Returns a member of an experiment that has not learned anything."""
    config = as_arrays(Config(env, obs_clip=obs_clip, **network))
    rng = np.random.default_rng(seed)

    def drawn(x):
        spread = 1.5 / np.prod(x.shape[:-1]) ** 0.5 if x.ndim > 1 else 0.3
        return np.asarray(spread * rng.normal(size=x.shape), np.float32)

    params = jax.eval_shape(config.build().init, jax.random.key(0))
    moments = ()
    if obs_clip is not None:
        one = observations.init(config.obs_spec())
        spread = jax.tree.map(lambda x: 1 + 3 * np.abs(drawn(x)), one.var)
        moments = one.replace(mean=jax.tree.map(drawn, one.mean), var=spread)
    return Learner(jax.tree.map(drawn, params), (), config, moments, (), (), ())


def seen(env, steps, count, seed=0):
    """Returns random observations, beginnings and masks, `[steps, count, ...]`."""
    rng, mask, obs = np.random.default_rng(seed), None, {}
    gone = rng.random((steps, count)) < env.broken
    for name, shape in env.sights:
        x = np.float32(3 * rng.normal(size=(steps, count, *shape)) + 1)
        x[gone] = 0 if name == "count" else np.nan
        obs[name] = x.astype(KINDS.get(name, np.float32))
    reset = rng.random((steps, count)) < 0.1
    if env.forbids:
        mask = rng.random((steps, count, sum(env.space.nvec))) < 0.5
        mask[..., np.cumsum((0, *env.space.nvec[:-1]))] = True
    return obs.get(None, obs), reset, mask

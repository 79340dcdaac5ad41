"""Steps that are not finite: how they are known, and what is kept of them."""

import dataclasses

import jax
import jax.numpy as jnp

from ppo_jax.arrays import tree
from ppo_jax.envs.env import Env, of_each, strong
from ppo_jax.networks.distributions import Distribution
from ppo_jax.state import Actor, Trajectory
from ppo_jax.types import Array, Key, PyTree


def finite(values: PyTree, like: Array) -> Array:
    """Per environment, whether all floats are finite; bool, as `like`."""
    return jnp.broadcast_to(tree.all_finite(values, batch_axes=1), like.shape)


def has_nan(values: PyTree, like: Array) -> Array:
    """Per environment, whether a float is NaN; ±inf may be meant, as a sentinel."""
    nans = jax.tree.map(
        lambda x: jnp.where(jnp.isnan(x), x, 0.0),
        [x for x in jax.tree.leaves(values) if jnp.issubdtype(x.dtype, jnp.floating)],
    )
    return ~finite(nans, like)


def zero_unless(ok: Array, values: PyTree) -> PyTree:
    """Zeros in the place of what is not to be looked at."""
    return tree.where(ok, values, jax.tree.map(jnp.zeros_like, values))


def quarantined(step: Trajectory, valid: Array) -> Trajectory:
    """A step without weight, and with nothing that is not finite, unless `valid`."""
    return step._replace(
        obs=zero_unless(valid, step.obs),
        action=zero_unless(valid, step.action),
        log_prob=jnp.where(valid, step.log_prob, 0.0),
        value=_zero_unless_finite(step.value),
        old_value=zero_unless(valid, step.old_value),
        old_policy=_one_unless(valid, step.old_policy),
        next_value=_zero_unless_finite(step.next_value),
        reward=jnp.where(valid, step.reward, 0.0),
        valid=valid,
        weight=jnp.where(valid, step.weight, 0.0),
    )


def reset_broken(env: Env, actor: Actor, keys: Key) -> Actor:
    """Starts environments anew that are not finite by themselves any more."""
    ok = finite(actor.obs, actor.reset) & ~has_nan(actor.env_state, actor.reset)
    obs, env_state = of_each(env.reset)(keys)
    return unless(ok, actor, strong(obs), strong(env_state))


def unless(ok: Array, actor: Actor, obs: PyTree, env_state: PyTree) -> Actor:
    """The actor, whose episodes begin anew with these observations unless `ok`."""
    return dataclasses.replace(
        actor,
        env_state=tree.where(ok, actor.env_state, env_state),
        obs=tree.where(ok, actor.obs, obs),
        reset=actor.reset | ~ok,
        episode_return=jnp.where(ok, actor.episode_return, 0.0),
        episode_length=jnp.where(ok, actor.episode_length, 0),
    )


def _zero_unless_finite(x: Array) -> Array:
    return jnp.where(jnp.isfinite(x), x, 0.0)


def _one_unless(ok: Array, policy: Distribution) -> Distribution:
    """A policy with a derivative wherever it has no weight: ones suit any parameter."""
    return tree.where(ok, policy, jax.tree.map(jnp.ones_like, policy))

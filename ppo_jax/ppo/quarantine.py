"""Detection of steps that are not finite, and the records kept of them."""

import dataclasses

import jax
import jax.numpy as jnp

from ppo_jax.arrays import tree
from ppo_jax.envs.env import Env, of_each, strong
from ppo_jax.networks.distributions import Distribution
from ppo_jax.state import Actor, Trajectory
from ppo_jax.types import Array, Key, PyTree


def finite(values: PyTree, like: Array) -> Array:
    """Returns per environment whether all floats are finite; bool, shaped as `like`."""
    return jnp.broadcast_to(tree.all_finite(values, batch_axes=1), like.shape)


def has_nan(values: PyTree, like: Array) -> Array:
    """Returns per environment whether any float is NaN.

    ±inf is accepted, since environments may use it as a sentinel.
    """
    nans = jax.tree.map(
        lambda x: jnp.where(jnp.isnan(x), x, 0.0),
        [x for x in jax.tree.leaves(values) if jnp.issubdtype(x.dtype, jnp.floating)],
    )
    return ~finite(nans, like)


def zero_unless(ok: Array, values: PyTree) -> PyTree:
    """Returns the values, with zeros for environments that are not `ok`."""
    return tree.where(ok, values, jax.tree.map(jnp.zeros_like, values))


def quarantined(step: Trajectory, valid: Array) -> Trajectory:
    """Returns the step, with weight 0 and finite values where it is not `valid`."""
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
    """Resets environments whose own observation or state is broken.

    That is an observation that is not finite, or a state with a NaN.
    """
    ok = finite(actor.obs, actor.reset) & ~has_nan(actor.env_state, actor.reset)
    obs, env_state = of_each(env.reset)(keys)
    return unless(ok, actor, strong(obs), strong(env_state))


def unless(ok: Array, actor: Actor, obs: PyTree, env_state: PyTree) -> Actor:
    """Returns the actor with new episodes in the environments that are not `ok`.

    The new episodes begin with these observations and states.
    """
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
    """Returns the policy with all parameters 1 where it is not `ok`.

    It has a derivative there, since 1 is a possible value of any parameter.
    """
    return tree.where(ok, policy, jax.tree.map(jnp.ones_like, policy))

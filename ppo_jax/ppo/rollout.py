"""Acting: T steps in B environments with a frozen learner."""

import dataclasses
from typing import NamedTuple

import jax
import jax.numpy as jnp

from ppo_jax import tree
from ppo_jax.attacks.opponents import Answers, Opponent
from ppo_jax.component import require
from ppo_jax.critics import pessimistic
from ppo_jax.envs.env import Env, Timestep, strong
from ppo_jax.networks import Network, Output
from ppo_jax.networks.distributions import Distribution
from ppo_jax.normalization import observations
from ppo_jax.ppo import counting
from ppo_jax.state import Actor, Learner, Trajectory
from ppo_jax.types import Array, Carry, Key, PyTree

ATTACK = 1
"""Sets the keys of attacks apart from those of actions."""


class BootstrapSlots(NamedTuple):
    """Where truncated episodes leave off, `[S, B, ...]`: their value is still owed.

    S is the most truncations that an environment can have in one rollout, so one
    pass over the slots values them all.
    """

    final_obs: PyTree
    carry: Carry
    used: Array
    """Slots in use, `[B]`."""


def unroll(learner: Learner, actor: Actor, key: Key) -> tuple[Actor, Trajectory, Carry]:
    """Acts for `num_steps`; steps that are not finite are quarantined.

    Returns:
        The actor afterwards, the rollout `[T, B, ...]`, and the carries before the
        first step of each chunk, `[T / L, B, ...]`.
    """
    config = learner.config
    network = config.build()
    length = config.chunk if config.network.memory is not None else config.num_steps
    key_steps, key_reset = jax.random.split(key)
    shape = (config.num_steps // length, length, 1 + config.num_envs)
    keys = jax.random.split(key_steps, shape)

    def one_step(loop, keys):
        actor, slots = loop
        return _step(learner, network, actor, slots, keys)

    def one_chunk(loop, keys):
        carry = loop[0].carry
        loop, steps = jax.lax.scan(one_step, loop, keys)
        return loop, (steps, carry)

    loop = (actor, _no_slots(config.env, actor, config.num_steps))
    (actor, slots), (steps, carries) = jax.lax.scan(one_chunk, loop, keys)
    steps, slot = tree.merge_leading(steps)
    steps = _bootstrap(learner, network, actor, slots, steps, slot, key)
    return _reset_broken(config.env, actor, key_reset), steps, carries


def observe(learner: Learner, obs: PyTree) -> PyTree:
    """Observations as the network sees them."""
    if learner.config.obs_clip is None:
        return obs
    return observations.normalize(learner.obs_moments, obs, learner.config.obs_clip)


def start(env: Env, network: Network, num_envs: int, key: Key) -> Actor:
    """Environments at the start of their first episodes."""
    obs, env_state = jax.vmap(env.reset)(jax.random.split(key, num_envs))
    return Actor(
        env_state=strong(env_state),
        obs=strong(obs),
        reset=jnp.ones(num_envs, bool),
        carry=network.initial_carry(num_envs),
        episode_return=jnp.zeros(num_envs),
        episode_length=jnp.zeros(num_envs, jnp.int32),
    )


def action_masks(env: Env, actor: Actor) -> Array | None:
    """Which actions are allowed in each environment, if any are forbidden."""
    num_envs = actor.reset.shape[0]  # A state may have no leaves.
    return jax.vmap(env.action_mask, axis_size=num_envs)(actor.env_state)


def _step(
    learner: Learner, network: Network, actor: Actor, slots: BootstrapSlots, keys: Key
) -> tuple[tuple[Actor, BootstrapSlots], tuple[Trajectory, Array]]:
    """One step of all environments, and the slot that each of them wrote to.

    Takes a key for the actions and one per environment, `[1 + B]`.
    """
    config, num_envs = learner.config, actor.reset.size
    env = config.env
    mask = action_masks(env, actor)
    obs_ok = _finite(actor.obs, actor.reset)
    obs = _zero_unless(obs_ok, observe(learner, actor.obs))

    def answers(obs):
        return evaluate(network, learner.params, actor.carry, obs, actor.reset, mask)

    obs = _shown(config.opponent, answers, obs, num_envs, keys[0])
    policy, predicted, carry = answers(obs)
    value = pessimistic(predicted)
    action = policy.sample(keys[0])
    log_prob = policy.log_prob(action)
    timestep, env_state = jax.vmap(env.step)(
        keys[1:], actor.env_state, policy.to_action(action)
    )
    _require_one_each(timestep, actor.reset)
    outcome = (timestep.reward, timestep.final_obs, log_prob, value, carry)
    valid = obs_ok & _finite(outcome, obs_ok) & ~_has_nan(env_state, obs_ok)
    slots, slot = _record_truncation(slots, timestep, carry, valid)
    valid &= slot < _size(slots)
    last = timestep.terminated | timestep.truncated
    step = Trajectory(
        obs=_zero_unless(valid, obs),
        raw_obs=() if config.obs_clip is None else actor.obs,
        reset=actor.reset,
        action=_zero_unless(valid, action),
        log_prob=jnp.where(valid, log_prob, 0.0),
        action_mask=() if mask is None else mask,
        value=jnp.where(jnp.isfinite(value), value, 0.0),
        old_value=_zero_unless(valid, predicted.outputs) if predicted.clips else (),
        old_policy=_one_unless(valid, policy) if config.reads_old_policy else (),
        next_value=jnp.zeros_like(value),
        reward=jnp.where(valid, timestep.reward, 0.0),
        terminated=timestep.terminated,
        last=last,
        valid=valid,
        weight=jnp.where(valid, timestep.weight, 0.0),
        group=timestep.group,
        cost=timestep.cost,
        episode_return=actor.episode_return + timestep.reward,
        episode_length=counting.add(actor.episode_length),
    )
    actor = Actor(
        env_state=env_state,
        obs=timestep.obs,
        reset=last | ~valid,
        carry=_zero_unless(valid, carry),
        episode_return=jnp.where(last, 0.0, step.episode_return),
        episode_length=jnp.where(last, 0, step.episode_length),
    )
    return (actor, slots), (step, slot)


def evaluate(network, params, carry, obs, reset, mask=None) -> Output:
    """One step of a network: policy and value of `[B]`, and the carry after it."""
    batch = jax.tree.map(lambda x: x[None], (obs, reset, mask))
    out = network.apply(params, carry, *batch)
    policy, outputs = jax.tree.map(lambda x: x[0], (out.policy, out.value.outputs))
    return Output(policy, dataclasses.replace(out.value, outputs=outputs), out.carry)


def _shown(
    opponent: Opponent | None, answers: Answers, obs: PyTree, num_envs: int, key: Key
) -> PyTree:
    """What is seen in place of observations, one or several per environment."""
    if opponent is None:
        return obs
    key_attack = jax.random.fold_in(key, ATTACK)
    shown = opponent.show(answers, answers(obs), obs, key_attack)
    times = jax.tree.leaves(obs)[0].shape[0] // num_envs
    return tree.where(jnp.tile(opponent.plays(num_envs), times), shown, obs)


def _require_one_each(timestep: Timestep, reset: Array) -> None:
    """Raises a `ValueError` unless scalars are `[B]`: `[B, 1]` would broadcast."""
    for name in ("reward", "terminated", "truncated", "weight", "cost", "group"):
        got = getattr(timestep, name)
        kind = bool if name in ("terminated", "truncated") else got.dtype
        ok = got.shape == reset.shape and got.dtype == kind
        expected = f"shape {reset.shape} and dtype {jnp.dtype(kind)}"
        require(ok, f"Timestep.{name}", f"{got.dtype}{list(got.shape)}", expected)


def _no_slots(env: Env, actor: Actor, num_steps: int) -> BootstrapSlots:
    size = 1 + (num_steps - 1) // env.min_steps_to_truncation
    empty = jax.tree.map(
        lambda x: jnp.zeros((size, *x.shape), x.dtype), (actor.obs, actor.carry)
    )
    return BootstrapSlots(*empty, used=jnp.zeros_like(actor.episode_length))


def _size(slots: BootstrapSlots) -> int:
    return jax.tree.leaves(slots.final_obs)[0].shape[0]


def _record_truncation(
    slots: BootstrapSlots, timestep: Timestep, carry: Carry, valid: Array
) -> tuple[BootstrapSlots, Array]:
    """Notes the final observations of truncated episodes, and the carry after them.

    Returns:
        The slots, and the index of each environment's next one, `[B]`; S or more
        means that there was no room.
    """
    owed = valid & timestep.truncated & ~timestep.terminated
    write = owed[None] & (jnp.arange(_size(slots))[:, None] == slots.used[None])
    now = jax.tree.map(lambda x: x[None], (timestep.final_obs, carry))
    final_obs, carry = tree.where(write, now, (slots.final_obs, slots.carry))
    used = slots.used + owed
    return BootstrapSlots(final_obs, carry, used), jnp.where(owed, slots.used, 0)


def _bootstrap(
    learner: Learner,
    network: Network,
    actor: Actor,
    slots: BootstrapSlots,
    steps: Trajectory,
    slot: Array,
    key: Key,
) -> Trajectory:
    """Fills in `next_value`: the next step's, or a slot's where truncated."""
    num_envs = actor.reset.shape[0]
    size = _size(slots)
    now = (actor.obs, actor.carry, actor.reset)
    owed = (slots.final_obs, slots.carry, jnp.zeros((size, num_envs), bool))
    rows = jax.tree.map(lambda a, b: jnp.concatenate([a[None], b]), now, owed)
    obs, carry, reset = tree.merge_leading(rows)
    obs = _zero_unless(_finite(obs, reset), observe(learner, obs))

    def answers(obs):
        return evaluate(network, learner.params, carry, obs, reset)

    obs = _shown(learner.config.opponent, answers, obs, num_envs, key)
    value = pessimistic(answers(obs).value).reshape(1 + size, num_envs)
    owed = jnp.take_along_axis(value[1:], slot, axis=0)
    following = jnp.concatenate([steps.value[1:], value[:1]])
    truncated = steps.last & ~steps.terminated
    return steps._replace(next_value=jnp.where(truncated, owed, following))


def _reset_broken(env: Env, actor: Actor, key: Key) -> Actor:
    """Starts environments anew that are not finite by themselves any more."""
    ok = _finite(actor.obs, actor.reset) & ~_has_nan(actor.env_state, actor.reset)
    obs, env_state = jax.vmap(env.reset)(jax.random.split(key, ok.shape[0]))
    return dataclasses.replace(
        actor,
        env_state=tree.where(ok, actor.env_state, strong(env_state)),
        obs=tree.where(ok, actor.obs, strong(obs)),
        reset=actor.reset | ~ok,
        episode_return=jnp.where(ok, actor.episode_return, 0.0),
        episode_length=jnp.where(ok, actor.episode_length, 0),
    )


def _finite(values: PyTree, like: Array) -> Array:
    """Per environment, whether all floats are finite; bool, as `like`."""
    return jnp.broadcast_to(tree.all_finite(values, batch_axes=1), like.shape)


def _has_nan(values: PyTree, like: Array) -> Array:
    """Per environment, whether a float is NaN; ±inf may be meant, as a sentinel."""
    nans = jax.tree.map(
        lambda x: jnp.where(jnp.isnan(x), x, 0.0),
        [x for x in jax.tree.leaves(values) if jnp.issubdtype(x.dtype, jnp.floating)],
    )
    return ~_finite(nans, like)


def _zero_unless(ok: Array, values: PyTree) -> PyTree:
    return tree.where(ok, values, jax.tree.map(jnp.zeros_like, values))


def _one_unless(ok: Array, policy: Distribution) -> Distribution:
    """A policy with a derivative wherever it has no weight: ones suit any parameter."""
    return tree.where(ok, policy, jax.tree.map(jnp.ones_like, policy))

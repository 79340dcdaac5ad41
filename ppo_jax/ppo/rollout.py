"""Rollouts: T steps of a frozen learner in B environments, and their record."""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from ppo_jax.arrays import counting, sharding, tree
from ppo_jax.arrays.calls import apart
from ppo_jax.arrays.keys import fused, plain
from ppo_jax.arrays.packing import pack_rows, pack_small
from ppo_jax.critics import ValueDist, pessimistic
from ppo_jax.envs.env import Env, Timestep
from ppo_jax.ppo import acting, quarantine, valuation
from ppo_jax.ppo.acting import Agent, Deed, Keys, Opposition
from ppo_jax.state import Actor, Learner, Trajectory
from ppo_jax.types import Array, Carry, Key, PyTree


class BootstrapSlots(NamedTuple):
    """Ends of truncated episodes, `[S, B, ...]`, whose values are still owed.

    S is the most truncations that an environment can have in one rollout, so one
    pass over the slots values them all.
    """

    final_obs: PyTree
    carry: Carry
    used: Array
    """Slots in use, `[B]`."""


class Draws(NamedTuple):
    """Keys of a rollout, `[B]` each; a device that shares the agent has its share."""

    steps: Keys
    """Keys of steps, `[T / L, L, B]`, chunk after chunk."""
    resets: Key
    renewals: Key
    owed: Key
    """Key of the attacks on observations whose values are owed, `[]`."""


def unroll(learner: Learner, actor: Actor, key: Key) -> tuple[Actor, Trajectory, Carry]:
    """Acts for `num_steps`; steps that are not finite are quarantined.

    Each of the devices that share the agent acts in its own environments. It returns
    the actor of these environments, and the steps of all devices.

    Returns:
        The actor afterwards, the rollout `[T, B, ...]`, and the carries before the
        first step of each chunk, `[T / L, B, ...]`.
    """
    config = learner.config
    crew = sharding.crew(config.num_envs)
    agent = traveller(learner)
    actor, key = fused((actor, key))
    drawn = draws(config, key)

    def one_step(loop, keys):
        actor, slots = loop.unpack()
        loop, kept = _step(agent, actor, slots, keys)
        return pack_small(loop), pack_rows(kept)

    def one_chunk(loop, keys):
        actor, _ = loop.unpack()
        loop, steps = jax.lax.scan(one_step, loop, keys)
        return loop, (steps, actor.carry)

    actor = acting.renew(config.env, actor, drawn.renewals)
    loop = pack_small((actor, no_slots(config.env, actor, config.num_steps)))
    loop, (steps, carries) = jax.lax.scan(one_chunk, loop, drawn.steps)
    actor, slots = loop.unpack()
    steps, slot = tree.merge_leading(steps).unpack()
    steps = completed(agent, actor, slots, steps, slot, drawn.owed)
    actor = quarantine.reset_broken(config.env, actor, drawn.resets)
    steps, carries = (crew.whole(shares, axis=1) for shares in (steps, carries))
    return plain(actor), steps, carries


def traveller(learner: Learner) -> Agent:
    """Returns the agent that acts in rollouts, with its opponent."""
    config, opposition = learner.config, None
    if config.opponent is not None:
        plays = config.opponent.plays(config.num_envs)
        crew = sharding.crew(config.num_envs)
        opposition = Opposition(config.opponent, crew.own(plays))
    return Agent(learner, config.build(), acting.sampled, opposition)


def draws(config: Any, key: Key) -> Draws:
    """Draws the keys of a rollout."""
    crew = sharding.crew(config.num_envs)
    length = kept_together(config)
    key_steps, key_reset, key_renewal, key_owed = jax.random.split(key, 4)
    shape = (config.num_steps // length, length, config.num_envs, 2)
    pairs = crew.own(jax.random.split(key_steps, shape), axis=2)
    keys = Keys(action=pairs[..., 0], env=pairs[..., 1])
    renewals, resets = (
        crew.own(jax.random.split(key, config.num_envs))
        for key in (key_renewal, key_reset)
    )
    return Draws(keys, resets, renewals, key_owed)


def kept_together(config: Any) -> int:
    """Returns L, the steps from one kept carry to the next; T without a memory."""
    return config.chunk if config.network.memory is not None else config.num_steps


def _step(
    agent: Agent, actor: Actor, slots: BootstrapSlots, keys: Keys
) -> tuple[tuple[Actor, BootstrapSlots], tuple[Trajectory, Array]]:
    """Takes one step in all environments.

    Returns:
        The actor and the slots after the step; the record of the step, and the index
        of the slot that each environment wrote to.
    """
    config = agent.learner.config
    deed = acting.act(agent, config.env.step, actor, actor.carry, keys)
    return lived(config, actor, slots, deed)


def lived(
    config: Any, actor: Actor, slots: BootstrapSlots, deed: Deed
) -> tuple[tuple[Actor, BootstrapSlots], tuple[Trajectory, Array]]:
    """Returns the actor after a step, and the step's record; see `_step`."""
    decision, step = deed.decision, _kept(config, actor, deed)
    if not valuation.independent(config):
        step = _judged(config, step, decision.value)
    final_obs, ok = deed.timestep.final_obs, decision.finite
    observed = (step.reward, step.weight, final_obs)
    outcome = (observed, step.log_prob, step.value, decision.carry)
    valid = ok & quarantine.finite(outcome, ok) & (step.weight >= 0)
    valid &= ~quarantine.has_nan(deed.env_state, ok)
    slots, slot = _record_truncation(slots, deed.timestep, decision.carry, valid)
    actor = Actor(
        env_state=deed.env_state,
        obs=deed.timestep.obs,
        reset=step.last | ~valid,
        carry=quarantine.zero_unless(valid, decision.carry),
        episode_return=jnp.where(step.last, 0.0, step.episode_return),
        episode_length=jnp.where(step.last, 0, step.episode_length),
    )
    return (actor, slots), (step._replace(valid=valid), slot)


def _kept(config: Any, actor: Actor, deed: Deed) -> Trajectory:
    """Returns the record of a step, finite or not.

    `_judged` adds the log-probabilities and values.
    """
    decision = deed.decision
    timestep: Any = deed.timestep  # Of many environments: all fields are arrays.
    later: Any = ()
    return Trajectory(
        obs=decision.obs,
        raw_obs=() if config.obs_clip is None else actor.obs,
        reset=actor.reset,
        action=decision.action,
        log_prob=later,
        action_mask=() if decision.mask is None else decision.mask,
        value=later,
        old_value=later,
        old_policy=decision.policy,
        next_value=later,
        reward=timestep.reward,
        terminated=timestep.terminated,
        last=timestep.terminated | timestep.truncated,
        valid=decision.finite,
        weight=timestep.weight,
        group=timestep.group,
        cost=timestep.cost,
        episode_return=actor.episode_return + timestep.reward,
        episode_length=counting.add(actor.episode_length),
    )


def no_slots(env: Env, actor: Actor, num_steps: int) -> BootstrapSlots:
    """Returns as many empty slots as a rollout may need."""
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
    """Records the final observations of truncated episodes, and the carry after them.

    Returns:
        The slots, and the index of the slot that each environment wrote to, `[B]`; S
        or more means that there was no room, 0 also that nothing was written.
    """
    owed = valid & timestep.truncated & ~timestep.terminated
    write = owed[None] & (jnp.arange(_size(slots))[:, None] == slots.used[None])
    now = jax.tree.map(lambda x: x[None], (timestep.final_obs, carry))
    final_obs, carry = tree.where(write, now, (slots.final_obs, slots.carry))
    used = slots.used + owed
    return BootstrapSlots(final_obs, carry, used), jnp.where(owed, slots.used, 0)


def completed(
    agent: Agent,
    actor: Actor,
    slots: BootstrapSlots,
    steps: Trajectory,
    slot: Array,
    key: Key,
) -> Trajectory:
    """Returns a rollout with all values, and without anything that is not finite.

    Args:
        agent: The agent that acted.
        actor: The actor after the last step.
        slots: The ends of truncated episodes.
        steps: The record of the steps, `[T, B, ...]`.
        slot: Index of the slot that a truncated step wrote to, `[T, B]`.
        key: Key of an opponent.
    """
    config = agent.learner.config
    if valuation.independent(config):
        predictions = valuation.predict(agent.learner, (), steps.obs, steps.reset)
        steps = _judged(config, steps, predictions)
    last, owed = _owed(agent, actor, slots, key)
    following = jnp.concatenate([steps.value[1:], last[None]])
    truncated = steps.last & ~steps.terminated
    # NaN where there was no slot, so that the step is quarantined.
    owed = jnp.take_along_axis(owed, slot, axis=0, mode="fill")
    steps = steps._replace(next_value=jnp.where(truncated, owed, following))
    valid = steps.valid & jnp.isfinite(steps.value) & jnp.isfinite(steps.log_prob)
    valid &= jnp.isfinite(steps.next_value) | steps.terminated
    quarantined = quarantine.quarantined
    # Devices that share the agent pack the result, and later kernels read that.
    if sharding.crew(config.num_envs).size == 1:
        quarantined = apart(quarantined)
    return quarantined(steps, valid)


def _judged(config: Any, steps: Trajectory, value: ValueDist) -> Trajectory:
    """Returns the steps with log-probabilities of their actions, and values."""
    policy: Any = steps.old_policy
    return steps._replace(
        log_prob=policy.log_prob(steps.action),
        value=pessimistic(value),
        old_value=value.outputs if value.clips else (),
        old_policy=policy if config.reads_old_policy else (),
    )


def _owed(
    agent: Agent, actor: Actor, slots: BootstrapSlots, key: Key
) -> tuple[Array, Array]:
    """Returns values of the observations after the last step `[B]`, and of the slots.

    Values of slots are `[S, B]`.
    """
    num_envs, size = actor.reset.shape[0], _size(slots)
    now = (actor.obs, actor.carry, actor.reset)
    owed = (slots.final_obs, slots.carry, jnp.zeros((size, num_envs), bool))
    rows = jax.tree.map(lambda a, b: jnp.concatenate([a[None], b]), now, owed)
    obs, carry, reset = tree.merge_leading(rows)
    obs, _ = acting.view(agent.learner, obs, reset)

    def answers(obs):
        return acting.evaluate(agent.network, agent.learner.params, carry, obs, reset)

    if agent.opposition is not None:
        honest = answers(obs)
        attack = agent.opposition, agent.learner.config.network
        obs = acting.shown(*attack, answers, honest, obs, key)
    value = pessimistic(answers(obs).value).reshape(1 + size, num_envs)
    return value[0], value[1:]

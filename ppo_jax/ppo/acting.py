"""Acting: observations, outputs and actions of a frozen agent in one step."""

import dataclasses
import functools
from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp

from ppo_jax.arrays import tree
from ppo_jax.arrays.keys import fused
from ppo_jax.attacks.opponents import Answers, Opponent
from ppo_jax.component import require
from ppo_jax.critics import ValueDist
from ppo_jax.envs.env import Env, Step, Timestep, of_each, strong
from ppo_jax.networks import ActorCritic, Network, Output
from ppo_jax.networks.distributions import Distribution
from ppo_jax.normalization import observations
from ppo_jax.ppo import quarantine
from ppo_jax.state import Actor, Learner
from ppo_jax.types import Array, Carry, Key, Params, PyTree

Choice = Callable[[Distribution, Key], Array]
"""Function from a policy and a key to actions."""

Move = Callable[[Key, PyTree, Array], Step]
"""Function from a key, a state and an action to a timestep and the next state."""

ATTACK = 1
"""Number that sets the keys of attacks apart from those of actions."""


class Opposition(NamedTuple):
    """An opponent, and the environments in which it attacks the observations."""

    opponent: Opponent
    plays: Array
    """Whether the opponent attacks in each environment, bool `[B]`."""


class Agent(NamedTuple):
    """A learner that acts, its network, and its way of choosing actions."""

    learner: Learner
    network: Network
    choice: Choice
    opposition: Opposition | None = None
    """Attacker of the observations; None: no attacks."""


class Keys(NamedTuple):
    """Keys of a step, `[B]` each.

    If they were one array, XLA would never finish compiling some programs.
    """

    action: Key
    env: Key


class Decision(NamedTuple):
    """Observations and choices of a step; every leaf is `[B, ...]`."""

    obs: PyTree
    """Observations as the network saw them."""
    finite: Array
    """Whether each observation was finite; the network saw zeros instead if not."""
    mask: Array | None
    """Mask of the allowed actions, if any were forbidden."""
    action: Array
    policy: Distribution
    value: ValueDist
    carry: Carry
    """Carry after the step."""
    truth: Carry
    """Carry that the agent would have, had it always seen the true observations."""

    @property
    def move(self) -> Array:
        """The action as environments take it."""
        return self.policy.to_action(self.action)


class Deed(NamedTuple):
    """The decision of a step, and its outcome."""

    decision: Decision
    timestep: Timestep
    env_state: PyTree


def sampled(policy: Distribution, key: Key) -> Array:
    """Samples actions from the policy."""
    return policy.sample(key)


def most_likely(policy: Distribution, key: Key) -> Array:
    """Returns the most likely actions, whatever the key."""
    return policy.mode()


def start(env: Env, network: Network, keys: Key) -> Actor:
    """Resets one environment per key; returns the actor before its first step."""
    obs, env_state = of_each(env.reset)(keys)
    return begin(network, strong(obs), strong(env_state), keys.shape[0])


def begin(network: Network, obs: PyTree, env_state: PyTree, num_envs: int) -> Actor:
    """Returns an actor whose first episodes begin with these observations."""
    return Actor(
        env_state=env_state,
        obs=obs,
        reset=jnp.ones(num_envs, bool),
        carry=network.initial_carry(num_envs),
        episode_return=jnp.zeros(num_envs, jnp.float32),
        episode_length=jnp.zeros(num_envs, jnp.int32),
    )


def renew(env: Env, actor: Actor, keys: Key) -> Actor:
    """Renews the environments before a rollout, with one key for each."""
    env_state = of_each(env.renew)(keys, actor.env_state)
    return dataclasses.replace(actor, env_state=fused(env_state))


def act(agent: Agent, step: Move, actor: Actor, truth: Carry, keys: Keys) -> Deed:
    """Takes one step in all environments.

    Args:
        agent: The agent that acts.
        step: The step of one environment, as `Env.step`.
        actor: The environments, and the agent's carry before the step.
        truth: Carry that the agent would have, had it always seen the true
            observations. Harm is measured against its behaviour with this carry.
        keys: Two per environment. Attacks draw from the first environment's key for
            an action.
    """
    decision = decide(agent, actor, truth, keys.action)
    timestep, env_state = of_each(step)(keys.env, actor.env_state, decision.move)
    env_state = fused(env_state)  # An environment may have made keys itself.
    _require_one_each(timestep, actor.reset)
    return Deed(decision, timestep, env_state)


def decide(agent: Agent, actor: Actor, truth: Carry, keys: Key) -> Decision:
    """Chooses actions for all environments: the part of `act` before they step."""
    env, params = agent.learner.config.env, agent.learner.params
    mask, reset = _action_masks(env, actor), actor.reset
    obs, finite = view(agent.learner, actor.obs, reset)
    says = functools.partial(evaluate, agent.network, params, reset=reset, mask=mask)
    answers = functools.partial(says, actor.carry)
    if agent.opposition is not None:
        honest = says(truth, obs)
        attack = agent.opposition, agent.learner.config.network
        obs = shown(*attack, answers, honest, obs, keys[0])
        truth = honest.carry
    policy, value, carry = answers(obs)
    action = jax.vmap(agent.choice)(policy, keys)
    return Decision(obs, finite, mask, action, policy, value, carry, truth)


def view(learner: Learner, obs: PyTree, reset: Array) -> tuple[PyTree, Array]:
    """Returns observations as the network sees them, and which of them were finite.

    The network sees zeros in place of an observation that is not finite, but the actor
    sees its part if that is: what it does not read changes nothing of what it does.
    """
    network, seen = learner.config.network, observe(learner, obs)
    finite, part = quarantine.finite(obs, reset), network.of_actor(obs)
    own = quarantine.zero_unless(quarantine.finite(part, reset), network.of_actor(seen))
    return network.with_actor(quarantine.zero_unless(finite, seen), own), finite


def observe(learner: Learner, obs: PyTree) -> PyTree:
    """Returns observations in the units of the network."""
    return observations.normalize(learner.obs_moments, obs, learner.config.obs_clip)


def evaluate(
    network: Network,
    params: Params,
    carry: Carry,
    obs: PyTree,
    reset: Array,
    mask: Array | None = None,
) -> Output:
    """Applies a network for one step: returns policy and value `[B]`, and the carry."""
    batch = jax.tree.map(lambda x: x[None], (obs, reset, mask))
    out = network.apply(params, carry, *batch)
    policy, outputs = jax.tree.map(lambda x: x[0], (out.policy, out.value.outputs))
    return Output(policy, dataclasses.replace(out.value, outputs=outputs), out.carry)


def shown(
    opposition: Opposition,
    architecture: ActorCritic,
    answers: Answers,
    honest: Output,
    obs: PyTree,
    key: Key,
) -> PyTree:
    """Returns the observations, attacked in those environments that have an opponent.

    What only critics read stays true. There may be one observation per environment or
    several.
    """

    def answers_to(part):
        return answers(architecture.with_actor(obs, part))

    part, key_attack = architecture.of_actor(obs), jax.random.fold_in(key, ATTACK)
    attacked = opposition.opponent.show(answers_to, honest, part, key_attack)
    times = jax.tree.leaves(obs)[0].shape[0] // opposition.plays.size
    part = tree.where(jnp.tile(opposition.plays, times), attacked, part)
    return architecture.with_actor(obs, part)


def _action_masks(env: Env, actor: Actor) -> Array | None:
    """Returns masks of the allowed actions in each environment; None: all are."""
    num_envs = actor.reset.shape[0]  # A state may have no leaves.
    return jax.vmap(env.action_mask, axis_size=num_envs)(actor.env_state)


def _require_one_each(timestep: Timestep, reset: Array) -> None:
    """Raises a `ValueError` unless scalars are `[B]`: `[B, 1]` would broadcast."""
    for name in ("reward", "terminated", "truncated", "weight", "cost", "group"):
        got = getattr(timestep, name)
        kind = bool if name in ("terminated", "truncated") else got.dtype
        ok = got.shape == reset.shape and got.dtype == kind
        expected = f"shape {reset.shape} and dtype {jnp.dtype(kind)}"
        require(ok, f"Timestep.{name}", f"{got.dtype}{list(got.shape)}", expected)

"""Acting: what a frozen agent sees, says and does in one step of its environments."""

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
from ppo_jax.networks import Network, Output
from ppo_jax.networks.distributions import Distribution
from ppo_jax.normalization import observations
from ppo_jax.ppo import quarantine
from ppo_jax.state import Actor, Learner
from ppo_jax.types import Array, Carry, Key, Params, PyTree

Choice = Callable[[Distribution, Key], Array]
"""From a policy and a key to actions."""

Move = Callable[[Key, PyTree, Array], Step]
"""From a key, a state and an action to what they lead to."""

ATTACK = 1
"""Sets the keys of attacks apart from those of actions."""


class Opposition(NamedTuple):
    """Who changes what an agent sees."""

    opponent: Opponent
    plays: Array
    """In which environments, bool `[B]`."""


class Agent(NamedTuple):
    """Who acts, and how."""

    learner: Learner
    network: Network
    choice: Choice
    opposition: Opposition | None = None
    """Who changes what it sees; None: nobody."""


class Keys(NamedTuple):
    """Keys of a step `[B]`. As one array, XLA would compile some programs for ever."""

    action: Key
    env: Key


class Decision(NamedTuple):
    """What was seen and chosen in a step; every leaf `[B, ...]`."""

    obs: PyTree
    """As the network saw it."""
    finite: Array
    """Whether what there was to see was finite; zeros were seen in place of it."""
    mask: Array | None
    """Which actions were allowed, if any were forbidden."""
    action: Array
    policy: Distribution
    value: ValueDist
    carry: Carry
    """After the step."""
    truth: Carry
    """That of an agent which always saw the truth."""

    @property
    def move(self) -> Array:
        """The action as environments take it."""
        return self.policy.to_action(self.action)


class Deed(NamedTuple):
    """What was chosen in a step, and what it led to."""

    decision: Decision
    timestep: Timestep
    env_state: PyTree


def sampled(policy: Distribution, key: Key) -> Array:
    """Actions as likely as they are."""
    return policy.sample(key)


def most_likely(policy: Distribution, key: Key) -> Array:
    """Always the same actions."""
    return policy.mode()


def start(env: Env, network: Network, keys: Key) -> Actor:
    """Environments at the start of their first episodes, one per key."""
    obs, env_state = of_each(env.reset)(keys)
    return begin(network, strong(obs), strong(env_state), keys.shape[0])


def begin(network: Network, obs: PyTree, env_state: PyTree, num_envs: int) -> Actor:
    """Environments whose first episodes begin with these observations."""
    return Actor(
        env_state=env_state,
        obs=obs,
        reset=jnp.ones(num_envs, bool),
        carry=network.initial_carry(num_envs),
        episode_return=jnp.zeros(num_envs, jnp.float32),
        episode_length=jnp.zeros(num_envs, jnp.int32),
    )


def renew(env: Env, actor: Actor, keys: Key) -> Actor:
    """The actor before a rollout, one key per environment."""
    env_state = of_each(env.renew)(keys, actor.env_state)
    return dataclasses.replace(actor, env_state=fused(env_state))


def act(agent: Agent, step: Move, actor: Actor, truth: Carry, keys: Keys) -> Deed:
    """One step of all environments.

    Args:
        agent: Who acts.
        step: How one environment steps, as `Env.step`.
        actor: Where; what it remembers is before the step.
        truth: What it would remember, had it always seen the truth. Harm is measured
            against what it would do then.
        keys: Two per environment. What is random about attacks follows from the first
            one for an action.
    """
    decision = decide(agent, actor, truth, keys.action)
    timestep, env_state = of_each(step)(keys.env, actor.env_state, decision.move)
    env_state = fused(env_state)  # An environment may have made keys itself.
    _require_one_each(timestep, actor.reset)
    return Deed(decision, timestep, env_state)


def decide(agent: Agent, actor: Actor, truth: Carry, keys: Key) -> Decision:
    """What all environments are to be moved by; as `act`, before they move."""
    env, params = agent.learner.config.env, agent.learner.params
    mask, reset = _action_masks(env, actor), actor.reset
    obs, finite = view(agent.learner, actor.obs, reset)
    says = functools.partial(evaluate, agent.network, params, reset=reset, mask=mask)
    answers = functools.partial(says, actor.carry)
    if agent.opposition is not None:
        honest = says(truth, obs)
        obs = shown(agent.opposition, answers, honest, obs, keys[0])
        truth = honest.carry
    policy, value, carry = answers(obs)
    action = jax.vmap(agent.choice)(policy, keys)
    return Decision(obs, finite, mask, action, policy, value, carry, truth)


def view(learner: Learner, obs: PyTree, reset: Array) -> tuple[PyTree, Array]:
    """Observations as the network sees them, zeros unless finite; where they are."""
    finite = quarantine.finite(obs, reset)
    return quarantine.zero_unless(finite, observe(learner, obs)), finite


def observe(learner: Learner, obs: PyTree) -> PyTree:
    """Observations in the units of the network."""
    return observations.normalize(learner.obs_moments, obs, learner.config.obs_clip)


def evaluate(
    network: Network,
    params: Params,
    carry: Carry,
    obs: PyTree,
    reset: Array,
    mask: Array | None = None,
) -> Output:
    """One step of a network: policy and value of `[B]`, and the carry after it."""
    batch = jax.tree.map(lambda x: x[None], (obs, reset, mask))
    out = network.apply(params, carry, *batch)
    policy, outputs = jax.tree.map(lambda x: x[0], (out.policy, out.value.outputs))
    return Output(policy, dataclasses.replace(out.value, outputs=outputs), out.carry)


def shown(
    opposition: Opposition, answers: Answers, honest: Output, obs: PyTree, key: Key
) -> PyTree:
    """What is seen in place of observations, one or several per environment."""
    key_attack = jax.random.fold_in(key, ATTACK)
    attacked = opposition.opponent.show(answers, honest, obs, key_attack)
    times = jax.tree.leaves(obs)[0].shape[0] // opposition.plays.size
    return tree.where(jnp.tile(opposition.plays, times), attacked, obs)


def _action_masks(env: Env, actor: Actor) -> Array | None:
    """Which actions are allowed in each environment, if any are forbidden."""
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

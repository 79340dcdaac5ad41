"""A network as a pair of functions over time-major batches.

The parameters are `{"actor": …, "critic": …}`: they have nothing in common, unless
critics read what the actor's trunk makes of an observation. Everything that comes after
the memory exists once per critic; without a memory that is everything.
"""

from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp

from ppo_jax.critics import Critic, ValueDist
from ppo_jax.envs.env import ActionSpace
from ppo_jax.networks import distributions, modules
from ppo_jax.networks.architecture import ActorCritic
from ppo_jax.types import Array, Carry, Key, Params, PyTree


class Output(NamedTuple):
    """What a network says about observations `[T, B]`."""

    policy: distributions.Distribution
    value: ValueDist
    carry: Carry


class Network(NamedTuple):
    """Pure functions of an architecture, an action space and a kind of critic.

    Layers have gradients of their own, by `jax.custom_vjp`: there is reverse mode only.
    What forward mode would give, such as a Hessian times a vector v, is a gradient
    again, `jax.grad(lambda p: jnp.vdot(jax.grad(f)(p), v))`.
    """

    init: Callable[[Key], Params]
    initial_carry: Callable[[int], Carry]
    """The carry of that many environments at the start of an episode."""
    apply: Callable[..., Output]
    """`apply(params, carry, obs, reset, action_mask=None)`, time-major: the carry is
    cleared where `reset`, before each observation, which is consumed once."""


def build(
    architecture: ActorCritic,
    action_space: ActionSpace,
    obs_spec: PyTree,
    critic: Critic,
    num_critics: int,
) -> Network:
    """Makes the functions of a network.

    Args:
        architecture: What to build.
        action_space: What the policy chooses from.
        obs_spec: Shapes of one observation.
        critic: The kind of critic.
        num_critics: C, how many of them.
    """
    actor = modules.Actor(architecture, action_space)
    critics = modules.Critics(architecture, critic.num_outputs, num_critics)

    def initial_carry(num_envs: int) -> Carry:
        memory = architecture.memory
        if memory is None:
            return ()
        one = memory.initial_carry(num_envs)
        return {"actor": one, "critic": () if architecture.shared else one}

    def init(key: Key) -> Params:
        obs = jax.tree.map(lambda x: jnp.zeros((1, 1, *x.shape), x.dtype), obs_spec)
        carry: dict[str, Carry] = initial_carry(1) or _NO_CARRY
        reset = jnp.ones((1, 1), bool)
        key_actor, key_critic = jax.random.split(key)
        (_, features, _), made = actor.init_with_output(
            key_actor, carry["actor"], obs, reset
        )
        seen = features if architecture.shared else obs
        heads = critics.init(key_critic, carry["critic"], seen, reset)
        return {"actor": made["params"], "critic": heads["params"]}

    def apply(params, carry, obs, reset, action_mask=None) -> Output:
        carry = carry or _NO_CARRY
        params, obs = _in_its_dtype(architecture, params, obs)
        actor_carry, features, (outputs, free) = modules.apply(
            actor, params["actor"], carry["actor"], obs, reset
        )
        seen = features if architecture.shared else obs
        critic_carry, values = modules.apply(
            critics, params["critic"], carry["critic"], seen, reset
        )
        policy = architecture.head.policy(outputs, free, action_space, action_mask)
        carry = {"actor": actor_carry, "critic": critic_carry} if actor_carry else ()
        return Output(policy, ValueDist(values, critic), carry)

    return Network(init, initial_carry, apply)


def act(
    architecture: ActorCritic,
    action_space: ActionSpace,
    params: Params,
    carry: Carry,
    obs: PyTree,
    reset: Array,
    action_mask: Array | None = None,
) -> tuple[distributions.Distribution, Carry]:
    """What the actor says by itself in one step, as `Network.apply` of one.

    Args:
        architecture: The network's.
        action_space: What the policy chooses from.
        params: Those of the actor.
        carry: The actor's, before the step.
        obs: Observations as the network sees them, leaves `[B, ...]`.
        reset: Where an episode begins, bool `[B]`.
        action_mask: Which choices are legal `[B, n]`; None: all.

    Returns:
        The policy of `[B]`, and the carry after the step.
    """
    obs, reset, action_mask = jax.tree.map(lambda x: x[None], (obs, reset, action_mask))
    params, obs = _in_its_dtype(architecture, params, obs)
    actor = modules.Actor(architecture, action_space)
    carry, _, (outputs, free) = modules.apply(actor, params, carry, obs, reset)
    policy = architecture.head.policy(outputs, free, action_space, action_mask)
    return jax.tree.map(lambda x: x[0], policy), carry


def _in_its_dtype(
    architecture: ActorCritic, params: Params, obs: PyTree
) -> tuple[Params, PyTree]:
    """What hidden layers compute with."""
    dtype = architecture.compute_dtype
    return modules.hidden_as(dtype, params), modules.floats_as(dtype, obs)


def map_value_heads(
    params: Params, change: Callable[[Array, Array], tuple[Array, Array]]
) -> Params:
    """Parameters with other last layers of the critics.

    Args:
        params: Parameters of a network.
        change: From kernels `[C, features, N]` and biases `[C, N]` to new ones.
    """
    heads = params["critic"]["heads"]
    kernel, bias = change(heads["head"]["kernel"], heads["head"]["bias"])
    heads = heads | {"head": {"kernel": kernel, "bias": bias}}
    return params | {"critic": params["critic"] | {"heads": heads}}


_NO_CARRY: dict[str, Carry] = {"actor": (), "critic": ()}

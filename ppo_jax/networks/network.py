"""A network as a pair of functions over time-major batches.

The parameters are `{"actor": …, "critic": …}`. Actor and critics share nothing, unless
critics read the features of the actor's trunk. All layers after the memory exist once
per critic; without a memory, these are all layers.
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
    """Outputs of a network for observations `[T, B]`."""

    policy: distributions.Distribution
    value: ValueDist
    carry: Carry


class Network(NamedTuple):
    """Pure functions of an architecture, an action space and a kind of critic.

    Layers have gradients of their own, by `jax.custom_vjp`, so only reverse mode works.
    A result that forward mode would give, such as a Hessian times a vector v, is a
    gradient too: `jax.grad(lambda p: jnp.vdot(jax.grad(f)(p), v))`.
    """

    init: Callable[[Key], Params]
    initial_carry: Callable[[int], Carry]
    """A function from a number of environments to their carry when episodes start."""
    apply: Callable[..., Output]
    """`apply(params, carry, obs, reset, action_mask=None)`, time-major. Where `reset`
    is true, the carry is cleared before the observation. Each observation is consumed
    once."""


def build(
    architecture: ActorCritic,
    action_space: ActionSpace,
    obs_spec: PyTree,
    critic: Critic,
    num_critics: int,
) -> Network:
    """Makes the functions of a network.

    Args:
        architecture: The architecture.
        action_space: The actions that the policy chooses from.
        obs_spec: Shapes and types of one observation.
        critic: The kind of critic.
        num_critics: C, the number of critics.
    """
    actor = modules.Actor(architecture, action_space)
    critics = modules.Critics(architecture, critic.num_outputs, num_critics)

    def initial_carry(num_envs: int) -> Carry:
        memory = architecture.memory
        if memory is None:
            return ()
        of_critic = () if architecture.shared else memory.initial_carry(num_envs)
        return {"actor": memory.initial_carry(num_envs), "critic": of_critic}

    def init(key: Key) -> Params:
        obs = jax.tree.map(lambda x: jnp.zeros((1, 1, *x.shape), x.dtype), obs_spec)
        carry: dict[str, Carry] = initial_carry(1) or _NO_CARRY
        reset = jnp.ones((1, 1), bool)
        key_actor, key_critic = jax.random.split(key)
        (_, features, _), made = actor.init_with_output(
            key_actor, carry["actor"], architecture.of_actor(obs), reset
        )
        seen = features if architecture.shared else architecture.of_critics(obs)
        heads = critics.init(key_critic, carry["critic"], seen, reset)
        return {"actor": made["params"], "critic": heads["params"]}

    def apply(params, carry, obs, reset, action_mask=None) -> Output:
        carry = carry or _NO_CARRY
        params, obs = _in_its_dtype(architecture, params, obs)
        actor_carry, features, (outputs, free) = modules.apply(
            actor,
            params["actor"],
            carry["actor"],
            *(architecture.of_actor(obs), reset),
        )
        seen = features if architecture.shared else architecture.of_critics(obs)
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
    """Runs the actor alone for one step, as `Network.apply` does for T = 1.

    Args:
        architecture: The network's architecture.
        action_space: The actions that the policy chooses from.
        params: Parameters of the actor.
        carry: The actor's carry before the step.
        obs: Observations as the network sees them, leaves `[B, ...]`; those that the
            actor does not read may be missing.
        reset: True where an episode begins, bool `[B]`.
        action_mask: True for legal choices `[B, n]`; None: all are legal.

    Returns:
        The policy of `[B]`, and the carry after the step.
    """
    obs, reset, action_mask = jax.tree.map(lambda x: x[None], (obs, reset, action_mask))
    params, obs = _in_its_dtype(architecture, params, obs)
    actor = modules.Actor(architecture, action_space)
    seen = architecture.of_actor(obs)
    carry, _, (outputs, free) = modules.apply(actor, params, carry, seen, reset)
    policy = architecture.head.policy(outputs, free, action_space, action_mask)
    return jax.tree.map(lambda x: x[0], policy), carry


def _in_its_dtype(
    architecture: ActorCritic, params: Params, obs: PyTree
) -> tuple[Params, PyTree]:
    """Converts parameters of hidden layers and floats of observations to the dtype."""
    dtype = architecture.compute_dtype
    return modules.hidden_as(dtype, params), modules.floats_as(dtype, obs)


def map_value_heads(
    params: Params, change: Callable[[Array, Array], tuple[Array, Array]]
) -> Params:
    """Returns parameters in which the last layers of the critics are changed.

    Args:
        params: Parameters of a network.
        change: Function from kernels `[C, features, N]` and biases `[C, N]` to new
            ones.
    """
    heads = params["critic"]["heads"]
    kernel, bias = change(heads["head"]["kernel"], heads["head"]["bias"])
    heads = heads | {"head": {"kernel": kernel, "bias": bias}}
    return params | {"critic": params["critic"] | {"heads": heads}}


_NO_CARRY: dict[str, Carry] = {"actor": (), "critic": ()}

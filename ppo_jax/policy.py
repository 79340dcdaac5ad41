"""A policy by itself, which acts outside of training and without an environment."""

from collections.abc import Mapping
from numbers import Integral
from typing import Any, Self

import jax
import jax.numpy as jnp
from flax import struct

from ppo_jax import networks
from ppo_jax.component import require
from ppo_jax.envs.env import ActionSpace, Box, Discrete, MultiDiscrete
from ppo_jax.errors import Misfit, kind
from ppo_jax.networks import ActorCritic
from ppo_jax.normalization import observations
from ppo_jax.ppo import quarantine
from ppo_jax.state import Learner
from ppo_jax.types import Array, Carry, Key, Params, PyTree


@struct.dataclass
class State:
    """State of a policy in n episodes under way."""

    carry: Carry
    """Carry of the policy's memory, leaves `[n, ...]`; `()` without a memory."""
    reset: Array
    """True `[n]` for episodes that begin with the next observation."""


@struct.dataclass(eq=False)
class Policy:
    """A policy that acts as evaluations do, on observations as environments give them.

    Of a dictionary of observations it wants those that the actor reads; others may be
    there, and are left out.

    It is a pytree, so it can be an argument of a compiled function. `jax.tree.map` or
    `jax.vmap` make one policy of several, such as of the members of a population:
    `jax.vmap(Policy.of)(population.runs.learner)`.

    >>> from ppo_jax import Config
    >>> from ppo_jax.ppo import learner
    >>> run = learner.init(Config("CartPole-v1"), jax.random.key(0))
    >>> policy = Policy.of(run.learner)
    >>> state, obs = policy.init(2), jnp.zeros((2, 4))
    >>> action, state = jax.jit(policy.act)(state, obs)
    >>> ended = jnp.array([True, False])
    >>> action, state = policy.act(state, obs, jax.random.key(1), reset=ended)
    >>> action.shape
    (2,)
    """

    params: Params
    """Parameters of the actor."""
    obs_moments: PyTree
    """`Moments`, or `()` if observations are not normalised."""
    obs_clip: Array | None
    """Bound of normalised observations; None: they are not normalised."""
    architecture: ActorCritic
    action_space: ActionSpace = struct.field(pytree_node=False)
    obs_leaves: tuple[jax.ShapeDtypeStruct, ...] = struct.field(pytree_node=False)
    """Shapes and types of the leaves of an observation."""
    obs_structure: Any = struct.field(pytree_node=False)
    masked: bool = struct.field(pytree_node=False)
    """Whether the environment forbids actions."""

    @classmethod
    def of(cls, learner: Learner) -> Self:
        """Makes the policy of one member."""
        config, of_actor = learner.config, learner.config.network.of_actor
        obs, state = jax.eval_shape(config.env.reset, jax.random.key(0))
        leaves, structure = jax.tree.flatten(of_actor(obs))
        return cls(
            params=learner.params["actor"],
            obs_moments=observations.part(learner.obs_moments, of_actor),
            obs_clip=config.obs_clip,
            architecture=config.network,
            action_space=_of_tuples(config.env.action_space),
            obs_leaves=tuple(jax.ShapeDtypeStruct(x.shape, x.dtype) for x in leaves),
            obs_structure=structure,
            masked=jax.eval_shape(config.env.action_mask, state) is not None,
        )

    def init(self, n: int) -> State:
        """Returns the state of n episodes before their first observations.

        Raises:
            Misfit: If n is no whole number of at least 1.
        """
        require(isinstance(n, Integral) and int(n) >= 1, "n", n, "at least 1")
        memory = self.architecture.memory
        carry = () if memory is None else memory.initial_carry(n)
        return State(carry, jnp.ones(n, bool))

    def act(
        self,
        state: State,
        obs: PyTree,
        key: Key | None = None,
        *,
        reset: Array | None = None,
        mask: Array | None = None,
    ) -> tuple[Array, State]:
        """Chooses the actions of one step of n episodes.

        An observation that is not finite is seen as zeros, as in evaluations.

        Args:
            state: The state before the step.
            obs: Observations as environments give them, leaves `[n, ...]`.
            key: Key to sample actions with; None: the most likely actions are taken.
            reset: Which observations are the first of an episode, bool `[n]`, beside
                the first ones after `init`; None: no others.
            mask: Which choices are legal, bool `[n, choices]`; None: all, in an
                environment that forbids no actions.

        Returns:
            Actions as environments take them, `[n, ...]`, and the state after the step.

        Raises:
            Misfit: If an argument has the wrong shapes, types or structure.
        """
        if not isinstance(state, State):
            raise Misfit(f"state: expected that of `init`, got {kind(state)}")
        n, obs = state.reset.shape[0], self._read(obs)
        keys = None if key is None else _split(key, n)
        _require_like("state.carry", state.carry, self._carry_spec, n)
        self._require_arguments(n, obs, reset, mask)
        obs = jax.tree.map(jnp.asarray, obs)
        begins = state.reset if reset is None else state.reset | reset
        seen = observations.normalize(self.obs_moments, obs, self.obs_clip)
        seen = quarantine.zero_unless(quarantine.finite(obs, begins), seen)
        policy, carry = networks.act(
            self.architecture,
            self.action_space,
            self.params,
            state.carry,
            *(seen, begins, mask),
        )
        if keys is None:
            raw = policy.mode()
        else:
            raw = jax.vmap(lambda policy, key: policy.sample(key))(policy, keys)
        return policy.to_action(raw), State(carry, jnp.zeros_like(begins))

    @property
    def obs_spec(self) -> PyTree:
        """Shapes and types of an observation."""
        return jax.tree.unflatten(self.obs_structure, self.obs_leaves)

    @property
    def mask_spec(self) -> jax.ShapeDtypeStruct | None:
        """Shape and type of a mask of legal choices; None for real actions."""
        if isinstance(self.action_space, Box):
            return None
        return jax.ShapeDtypeStruct((sum(self.action_space.nvec),), bool)

    @property
    def _carry_spec(self) -> PyTree:
        """Shapes and types of the carry of an episode."""
        one = jax.eval_shape(lambda: self.init(1).carry)
        return jax.tree.map(lambda x: jax.ShapeDtypeStruct(x.shape[1:], x.dtype), one)

    def _read(self, obs: PyTree) -> PyTree:
        """Returns an observation without what the actor does not read."""
        names = self.architecture.actor_obs
        if not (names and isinstance(obs, Mapping)):
            return obs
        return {name: obs[name] for name in names if name in obs}

    def _require_arguments(
        self, n: int, obs: PyTree, reset: Array | None, mask: Array | None
    ) -> None:
        _require_like("obs", obs, self.obs_spec, n)
        if reset is not None:
            _require_like("reset", reset, jax.ShapeDtypeStruct((), bool), n)
        if self.masked or mask is not None:
            _require_like("mask", mask, self.mask_spec, n)


def _of_tuples(space: ActionSpace) -> ActionSpace:
    """Returns the same actions with tuples of numbers, which can be hashed."""
    if isinstance(space, Box):
        return Box(*(tuple(map(float, limit)) for limit in space))
    if isinstance(space, MultiDiscrete):
        return MultiDiscrete(tuple(map(int, space.nvec)))
    return Discrete(int(space.n))


def _split(key: Key, n: int) -> Key:
    """Returns n keys of one; raises a `Misfit` if it is none."""
    try:
        return jax.random.split(key, n)
    except (TypeError, ValueError) as error:
        expected = "one key, such as jax.random.key(0)"
        raise Misfit(f"key: expected {expected}, got {kind(key)}") from error


def _require_like(name: str, given: PyTree, spec: PyTree, n: int) -> None:
    """Raises a `Misfit` unless an argument has the spec's leaves with n rows each."""
    expected = jax.tree.map(
        lambda x: kind(jax.ShapeDtypeStruct((n, *x.shape), x.dtype)), spec
    )
    got = jax.tree.map(kind, given)
    if jax.tree.flatten(got) != jax.tree.flatten(expected):
        raise Misfit(f"{name}: expected {expected}, got {got}")

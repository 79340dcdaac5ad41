"""Networks: torsos, memories, policy heads and value heads.

`build` turns an architecture into a pair of functions over time-major batches. The
parameters are `{"actor": …, "critic": …}`: they have nothing in common, unless critics
read what the actor's trunk makes of an observation. Everything that comes after the
memory exists once per critic; without a memory that is everything.
"""

import functools
from collections.abc import Callable
from typing import Any, ClassVar, Literal, NamedTuple

import flax.linen as nn
import jax
import jax.numpy as jnp

from ppo_jax import distributions, recurrence, tree
from ppo_jax.component import component, require, require_range
from ppo_jax.critics import Critic, ValueDist
from ppo_jax.envs.api import ActionSpace, Box, Discrete
from ppo_jax.recurrence import Cell, State
from ppo_jax.types import Array, Carry, Key, Params, PyTree

Activation = Literal["tanh", "relu", "leaky_relu", "elu", "gelu", "silu"]


def _require_sizes(name: str, sizes: tuple[int, ...]) -> None:
    require(all(size >= 1 for size in sizes), name, sizes, "sizes of at least 1")


@component
class Torso:
    """Turns an observation into features; ends in dense layers."""

    hidden: tuple[int, ...] = (64, 64)
    activation: Activation = "tanh"

    def validate(self) -> None:
        """Raises a `ValueError` for a layer without units."""
        _require_sizes(f"{type(self).__name__}.hidden", self.hidden)

    def require_fit(self, obs_spec: PyTree) -> None:
        """Raises a `ValueError` for observations of which nothing would be seen."""


@component
class Mlp(Torso):
    """Dense layers over the flattened observation."""


@component
class Cnn(Torso):
    """3×3 convolutions over grids `[H, W, features]`, then dense layers."""

    hidden: tuple[int, ...] = (128,)
    activation: Activation = "relu"
    channels: tuple[int, ...] = (16,)

    def validate(self) -> None:
        """Raises a `ValueError` for a layer without units."""
        _require_sizes("Cnn.channels", self.channels)
        _require_sizes("Cnn.hidden", self.hidden)

    def require_fit(self, obs_spec: PyTree) -> None:
        shapes = [x.shape for x in jax.tree.leaves(obs_spec)]
        grids = [shape for shape in shapes if len(shape) == 3]
        expected = "observations with grids [H, W, features]"
        require(bool(grids), "Cnn", shapes, expected)
        for height, width, _ in grids:
            most = (min(height, width) - 1) // 2
            expected = (
                f"at most {most} layers for grids of {height}×{width}, each of which "
                "takes 2 off height and width"
            )
            require(len(self.channels) <= most, "Cnn.channels", self.channels, expected)


@component
class Memory:
    """Recurrent layers between the torso and the heads."""

    size: int = 64
    layers: int = 1
    cell: ClassVar[Cell]

    def validate(self) -> None:
        """Raises a `ValueError` for a memory without units."""
        _require_sizes(f"{type(self).__name__}.size", (self.size,))
        _require_sizes(f"{type(self).__name__}.layers", (self.layers,))


@component
class Lstm(Memory):
    """Long short-term memory (Hochreiter and Schmidhuber, 1997)."""

    cell = recurrence.LSTM


@component
class Gru(Memory):
    """Gated recurrent units (Cho et al., 2014)."""

    cell = recurrence.GRU


@component
class GaussianHead:
    """For real actions: a Gaussian with a state-independent deviation, then a clip.

    Attributes:
        init_std: Deviation at the start, > 0.
    """

    init_std: float = 1.0

    def validate(self) -> None:
        """Raises a `ValueError` for a deviation out of range."""
        require_range(self, "init_std", "a number > 0", lambda std: std > 0)


@component
class SquashedHead:
    """For actions within bounds; σ = min_std + (max_std − min_std) · sigmoid(ρ).

    Attributes:
        min_std: Least deviation before squashing, > 0.
        max_std: Largest, more than `min_std`.
    """

    min_std: float = 0.2
    max_std: float = 1.5

    def validate(self) -> None:
        """Raises a `ValueError` for deviations that are not ordered."""
        require_range(self, "min_std", "a number > 0", lambda std: std > 0)
        if isinstance(self.min_std, float):
            expected = f"more than min_std = {self.min_std}"
            require_range(self, "max_std", expected, lambda std: std > self.min_std)


@component
class TanhHead(SquashedHead):
    """A Gaussian squashed by tanh into the bounds of the actions."""


@component
class SigmoidHead(SquashedHead):
    """A Gaussian squashed by a sigmoid into the bounds of the actions."""


TORSOS = (Mlp, Cnn)
HEADS = (GaussianHead, TanhHead, SigmoidHead)


@component
class ActorCritic:
    """An architecture.

    Attributes:
        torso: Features of the observation.
        memory: Recurrent layers after the torso; None: feed-forward.
        head: Policy head for real actions; discrete ones are categorical.
        critic_hidden: Dense layers of each critic after the memory.
        shared: Whether critics read the features of the actor's torso and memory, so
            that there is one of each; their loss moves them as well.
    """

    torso: Torso = Mlp()
    memory: Memory | None = None
    head: GaussianHead | TanhHead | SigmoidHead = GaussianHead()
    critic_hidden: tuple[int, ...] = ()
    shared: bool = False

    def validate(self) -> None:
        """Raises a `ValueError` for parts of one's own, which are not built."""
        for name, kinds in (("torso", TORSOS), ("head", HEADS)):
            part = getattr(self, name)
            known = " or ".join(kind.__name__ for kind in kinds)
            expected = f"{known} itself, because no other {name} can be built"
            require(type(part) in kinds, f"ActorCritic.{name}", part, expected)


class Output(NamedTuple):
    """What a network says about observations `[T, B]`."""

    policy: distributions.Distribution
    value: ValueDist
    carry: Carry


class Network(NamedTuple):
    """Pure functions of an architecture, an action space and a kind of critic."""

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

    Raises:
        ValueError: For observations of which the torso would see nothing.
    """
    architecture.torso.require_fit(obs_spec)
    actor = _Actor(architecture, action_space)
    critics = _Critics(architecture, critic.num_outputs, num_critics)

    def initial_carry(num_envs: int) -> Carry:
        memory = architecture.memory
        if memory is None:
            return ()
        one = _zero_carry(memory, num_envs)
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
        actor_carry, features, outputs = _apply(
            actor, params["actor"], carry["actor"], obs, reset
        )
        seen = features if architecture.shared else obs
        critic_carry, values = _apply(
            critics, params["critic"], carry["critic"], seen, reset
        )
        policy = _policy(architecture.head, action_space, outputs, action_mask)
        carry = {"actor": actor_carry, "critic": critic_carry} if actor_carry else ()
        return Output(policy, ValueDist(values, critic), carry)

    return Network(init, initial_carry, apply)


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


def _apply(module: nn.Module, params: Params, *inputs: PyTree) -> Any:
    return module.apply({"params": params}, *inputs)


_NO_CARRY: dict[str, Carry] = {"actor": (), "critic": ()}
_dense = functools.partial(nn.Dense, bias_init=nn.initializers.zeros)


def _orthogonal(scale: float) -> nn.initializers.Initializer:
    """Orthogonal matrices, one after the other under `vmap`.

    On a CPU, jax 0.10's batched QR waits for threads of the pool that it occupies: a
    few at a time stop the process for ever.
    """
    batched = nn.initializers.orthogonal(scale)

    def init(key, shape, dtype=jnp.float32, out_sharding=None):
        del out_sharding
        one = jax.custom_batching.sequential_vmap(lambda k: batched(k, shape, dtype))
        return one(key)

    return init


class _Layers(nn.Module):
    """Dense layers with an activation after each."""

    hidden: tuple[int, ...]
    activation: str

    @nn.compact
    def __call__(self, x: Array) -> Array:
        for size in self.hidden:
            init = _orthogonal(2**0.5)
            x = getattr(nn, self.activation)(_dense(size, kernel_init=init)(x))
        return x


class _Features(nn.Module):
    """A torso: grids through convolutions, everything else flat, then dense layers."""

    torso: Torso

    @nn.compact
    def __call__(self, obs: PyTree) -> Array:
        leaves = [x.astype(jnp.float32) for x in jax.tree.leaves(obs)]
        if isinstance(torso := self.torso, Cnn):
            leaves = [_convolve(torso, x) if x.ndim == 5 else x for x in leaves]
        flat = [x.reshape(*x.shape[:2], -1) for x in leaves]
        return _Layers(self.torso.hidden, self.torso.activation)(
            jnp.concatenate(flat, axis=-1)
        )


def _convolve(torso: Cnn, x: Array) -> Array:
    """Convolves grids `[T, B, H, W, features]`; within a module's call."""
    grids = tree.merge_leading(x)
    for channels in torso.channels:
        init = _orthogonal(2**0.5)
        layer = nn.Conv(channels, (3, 3), padding="VALID", kernel_init=init)
        grids = getattr(nn, torso.activation)(layer(grids))
    return grids.reshape(*x.shape[:2], *grids.shape[1:])


class _Recurrent(nn.Module):
    """A recurrent layer over time."""

    memory: Memory

    @nn.compact
    def __call__(self, carry, x, reset) -> tuple[State, Array]:
        cell, size = self.memory.cell, self.memory.size
        inputs = _dense(cell.gates * size, name="inputs")(x)
        kernel = self.param("recurrent", _orthogonal_gates, size, cell.gates)
        return recurrence.over_time(cell, kernel, carry, inputs, reset)


def _orthogonal_gates(key: Key, size: int, gates: int) -> Array:
    """An orthogonal matrix per gate, side by side."""
    init, keys = _orthogonal(1.0), jax.random.split(key, gates)
    return jnp.concatenate([init(key, (size, size)) for key in keys], axis=1)


class _Memory(nn.Module):
    """All recurrent layers, one after the other."""

    memory: Memory

    @nn.compact
    def __call__(self, carry, x, reset):
        after = []
        for layer, before in enumerate(carry):
            name = f"layer_{layer}"
            state, x = _Recurrent(self.memory, name=name)(before, x, reset)
            after.append(state)
        return tuple(after), x


class _Trunk(nn.Module):
    """A torso and, if there is one, a memory over time."""

    architecture: ActorCritic

    @nn.compact
    def __call__(self, carry, obs, reset):
        x = _Features(self.architecture.torso, name="torso")(obs)
        if self.architecture.memory is None:
            return carry, x
        return _Memory(self.architecture.memory, name="memory")(carry, x, reset)


class _Actor(nn.Module):
    architecture: ActorCritic
    action_space: Any

    @nn.compact
    def __call__(self, carry, obs, reset):
        carry, x = _Trunk(self.architecture, name="trunk")(carry, obs, reset)
        sizes, is_box = _policy_sizes(self.action_space)
        init = _orthogonal(0.01)
        outputs = {"head": _dense(sum(sizes), kernel_init=init, name="head")(x)}
        if is_box:
            rho = self.param("log_std", nn.initializers.zeros, (sum(sizes),))
            outputs["log_std"] = rho
        return carry, x, outputs


class _Critics(nn.Module):
    architecture: ActorCritic
    num_outputs: int
    num_critics: int

    @nn.compact
    def __call__(self, carry, x, reset):
        if self.architecture.memory is not None and not self.architecture.shared:
            carry, x = _Trunk(self.architecture, name="trunk")(carry, x, reset)
        if self.is_initializing():
            return carry, self._first(x)
        head = _CriticHead(self.architecture, self.num_outputs, parent=None)
        heads = self.variables["params"]["heads"]

        def one(i):
            return _apply(head, jax.tree.map(lambda leaf: leaf[i], heads), x)

        # One after the other: products of a batch would be transposed back and forth.
        each = [one(i) for i in range(self.num_critics)]
        return carry, jnp.stack(each, axis=-2)

    def _first(self, x):
        """Makes the parameters of all heads, leaves `[C, ...]`."""
        heads = nn.vmap(
            _CriticHead,
            variable_axes={"params": 0},
            split_rngs={"params": True},
            in_axes=None,  # pyright: ignore[reportArgumentType]
            out_axes=-2,
            axis_size=self.num_critics,
        )
        return heads(self.architecture, self.num_outputs, name="heads")(x)


class _CriticHead(nn.Module):
    architecture: ActorCritic
    num_outputs: int

    @nn.compact
    def __call__(self, x):
        if self.architecture.memory is None and not self.architecture.shared:
            x = _Features(self.architecture.torso, name="torso")(x)
        hidden = self.architecture.critic_hidden
        x = _Layers(hidden, self.architecture.torso.activation, name="layers")(x)
        init = _orthogonal(1.0)
        return _dense(self.num_outputs, kernel_init=init, name="head")(x)


def _zero_carry(memory: Memory, num_envs: int) -> Carry:
    one = (jnp.zeros((num_envs, memory.size)),) * memory.cell.states
    return (one,) * memory.layers


def _policy_sizes(space: ActionSpace) -> tuple[tuple[int, ...], bool]:
    """Numbers per component of an action, and whether actions are real."""
    if isinstance(space, Box):
        return (1,) * len(space.low), True
    return ((space.n,) if isinstance(space, Discrete) else space.nvec), False


def _policy(
    head: GaussianHead | SquashedHead,
    space: ActionSpace,
    outputs: PyTree,
    mask: Array | None,
) -> distributions.Distribution:
    """The distribution that an actor's outputs stand for."""
    x = outputs["head"]
    if isinstance(space, Box):
        return _gaussian(head, space, x, outputs["log_std"])
    if mask is not None:
        x = distributions.mask_logits(x, mask)
    if isinstance(space, Discrete):
        return distributions.Categorical(x)
    ends = [sum(space.nvec[: i + 1]) for i in range(len(space.nvec) - 1)]
    return distributions.MultiCategorical(tuple(jnp.split(x, ends, axis=-1)))


def _gaussian(
    head: GaussianHead | SquashedHead, space: Box, loc: Array, rho: Array
) -> distributions.Distribution:
    if isinstance(head, SquashedHead):
        scale = head.min_std + (head.max_std - head.min_std) * jax.nn.sigmoid(rho)
        tanh = isinstance(head, TanhHead)
        kind = distributions.TanhGaussian if tanh else distributions.SigmoidGaussian
    else:
        scale, kind = head.init_std * jnp.exp(rho), distributions.DiagGaussian
    return kind(loc, jnp.broadcast_to(scale, loc.shape), space.low, space.high)

"""The layers of a network, in flax."""

import functools
from typing import Any

import flax.linen as nn
import jax
import jax.numpy as jnp

from ppo_jax import tree
from ppo_jax.envs.env import ActionSpace, Box, Discrete
from ppo_jax.networks import recurrence
from ppo_jax.networks.architecture import ActorCritic, Cnn, Memory, Torso
from ppo_jax.networks.recurrence import State
from ppo_jax.types import Array, Key, Params, PyTree


def apply(module: nn.Module, params: Params, *inputs: PyTree) -> Any:
    """What a module says, with parameters of its own."""
    return module.apply({"params": params}, *inputs)


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


class Actor(nn.Module):
    """The carry, the features and the numbers that a policy is made of."""

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


class Critics(nn.Module):
    """The carry, and what all critics put out, `[..., C, N]`."""

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
            return apply(head, jax.tree.map(lambda leaf: leaf[i], heads), x)

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


def _policy_sizes(space: ActionSpace) -> tuple[tuple[int, ...], bool]:
    """Numbers per component of an action, and whether actions are real."""
    if isinstance(space, Box):
        return (1,) * len(space.low), True
    return ((space.n,) if isinstance(space, Discrete) else space.nvec), False

"""The modules of a network, in flax."""

from typing import Any

import flax.linen as nn
import jax
import jax.numpy as jnp
from flax.errors import NameInUseError

from ppo_jax.errors import Misfit, kind
from ppo_jax.networks.architecture import ActorCritic
from ppo_jax.networks.layers import Layers, last, orthogonal
from ppo_jax.networks.memories import Memory
from ppo_jax.networks.torsos import Torso
from ppo_jax.types import Array, Params, PyTree

HIDDEN = ("trunk", "torso", "layers")
"""Names of the modules before the last layers of a network."""


def floats_as(dtype: Any, tree: PyTree) -> PyTree:
    """Converts the floats of a tree to another type."""

    def cast(x):
        return x.astype(dtype) if jnp.issubdtype(x.dtype, jnp.floating) else x

    return jax.tree.map(cast, tree)


def hidden_as(dtype: Any, params: Params) -> Params:
    """Converts the parameters of hidden layers to another type."""

    def part(name, of):
        if not isinstance(of, dict):
            return of
        return floats_as(dtype, of) if name in HIDDEN else hidden_as(dtype, of)

    return {name: part(name, of) for name, of in params.items()}


def apply(module: nn.Module, params: Params, *inputs: PyTree) -> Any:
    """Applies a module with its parameters to inputs."""
    return module.apply({"params": params}, *inputs)


class _Features(nn.Module):
    """The features that a torso makes of observations."""

    torso: Torso

    @nn.compact
    def __call__(self, obs: PyTree) -> Array:
        x = self.torso(obs)
        steps = jax.tree.leaves(obs)[0].shape[:2]
        _require_features(self.torso, x, steps)
        return x


class _Remembered(nn.Module):
    """The features that a memory makes of other features, over time."""

    memory: Memory

    @nn.compact
    def __call__(self, carry, x, reset):
        after, x = self.memory(carry, x, reset)
        _require_features(self.memory, x, reset.shape)
        old, new = (jax.tree.map(kind, each) for each in (carry, after))
        if new != old:
            name = type(self.memory).__name__
            raise Misfit(f"{name}: expected the carry {old} as before, got {new}")
        return after, x


def _require_features(part: Torso | Memory, x: Array, steps: tuple[int, ...]) -> None:
    """Raises a `Misfit` unless there are features for each step."""
    if jnp.ndim(x) != 3 or jnp.shape(x)[:2] != steps:
        shape = ", ".join(map(str, steps))
        name = type(part).__name__
        raise Misfit(f"{name}: expected features of shape [{shape}, n], got {kind(x)}")


class _Trunk(nn.Module):
    """A torso and, if there is one, a memory over time."""

    architecture: ActorCritic

    @nn.compact
    def __call__(self, carry, obs, reset):
        x = _Features(self.architecture.torso, name="torso")(obs)
        if self.architecture.memory is None:
            return carry, x
        return _Remembered(self.architecture.memory, name="memory")(carry, x, reset)


class Actor(nn.Module):
    """The actor: it returns the carry, the features and the inputs of the policy head.

    These inputs are the outputs of the last layer, and parameters that depend on no
    observation, by name.
    """

    architecture: ActorCritic
    action_space: Any

    @nn.compact
    def __call__(self, carry, obs, reset):
        carry, x = _Trunk(self.architecture, name="trunk")(carry, obs, reset)
        head, init = self.architecture.head, orthogonal(0.01)
        size, sizes = head.num_outputs(self.action_space), head.free(self.action_space)
        outputs = last(size, kernel_init=init)(x)
        free = {name: self._free(name, size) for name, size in sizes.items()}
        return carry, x, (outputs, free)

    def _free(self, name: str, size: int) -> Array:
        try:
            return self.param(name, nn.initializers.zeros, (size,), jnp.float32)
        except NameInUseError:
            head = type(self.architecture.head).__name__
            message = (
                f"{head}.free: expected a name that nothing else has, got {name!r}"
            )
            raise Misfit(message) from None


class Critics(nn.Module):
    """The critics: they return the carry, and their outputs `[..., C, N]`."""

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
        x = Layers(hidden, self.architecture.torso.activation, name="layers")(x)
        return last(self.num_outputs, kernel_init=orthogonal(1.0))(x)

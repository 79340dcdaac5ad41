"""Memories: layers between torso and heads, whose carry lasts for an episode."""

from typing import Any, ClassVar

import flax.linen as nn
import jax
import jax.numpy as jnp

from ppo_jax.component import component, require
from ppo_jax.component.bounds import Count
from ppo_jax.errors import missing
from ppo_jax.networks import linear_recurrence, recurrence
from ppo_jax.networks.layers import dense, orthogonal
from ppo_jax.networks.recurrence import Cell, State
from ppo_jax.types import Array, Carry, Key

SLOWEST = 256
"""Steps over which the slowest gate of a new `MinGru` forgets."""


@component
class Memory:
    """A layer that turns features into features which depend on earlier ones too.

    A memory of your own is a `Recurrent` with another cell, a `Layered` with another
    layer, or a `__call__` in flax that goes over time; `selfcheck` shows whether it
    forgets when an episode begins.
    """

    def initial_carry(self, num_envs: int) -> Carry:
        """Returns the empty carry: a tuple of layers, leaves `[B, n]` of zeros."""
        raise missing(self, "initial_carry")

    def __call__(self, carry: Carry, x: Array, reset: Array) -> tuple[Carry, Array]:
        """Returns the carry after the last step, and features `[T, B, n]`.

        Args:
            carry: The carry before the first step.
            x: Features `[T, B, n]`.
            reset: True where an episode begins, bool `[T, B]`: the carry is set to zero
                before that step.
        """
        raise missing(self, "__call__")


@component
class Layered(Memory):
    """Layers of a memory, one after the other.

    Attributes:
        size: Number of units of a layer.
        layers: Number of layers.
    """

    size: Count = 64
    layers: Count = 1

    @property
    def states(self) -> int:
        """Number of parts of a layer's carry."""
        return 1

    def layer(self, name: str) -> nn.Module:
        """Makes a layer: it returns its carry after the last step, and features."""
        raise missing(self, "layer")

    def initial_carry(self, num_envs: int) -> Carry:
        def one():
            return jnp.zeros((num_envs, self.size), jnp.float32)

        # No array is there twice, as it could not be donated.
        layers, states = range(self.layers), range(self.states)
        return tuple(tuple(one() for _ in states) for _ in layers)

    def __call__(self, carry: Carry, x: Array, reset: Array) -> tuple[Carry, Array]:
        after = []
        for index, before in enumerate(carry):
            state, x = self.layer(f"layer_{index}")(before, x, reset)
            after.append(state)
        return tuple(after), x


@component
class Recurrent(Layered):
    """Recurrent layers, whose gates depend on what the layer said before.

    >>> @component
    ... class Fading(Recurrent):
    ...     cell = Cell(
    ...         lambda carry, x, recurrent: (0.9 * carry[0] + jnp.tanh(x + recurrent),),
    ...         gates=1,
    ...         states=1,
    ...     )
    """

    cell: ClassVar[Cell]

    def validate(self) -> None:
        """Raises a `ValueError` for a memory without a `cell`."""
        name = type(self).__name__
        known = hasattr(type(self), "cell")
        require(known, f"{name}.cell", None, "a Cell, which a subclass has")

    @property
    def states(self) -> int:
        return self.cell.states

    def layer(self, name: str) -> nn.Module:
        return _Units(self.cell, self.size, name=name)


@component
class Lstm(Recurrent):
    """Long short-term memory (Hochreiter and Schmidhuber, 1997)."""

    cell = recurrence.LSTM


@component
class Gru(Recurrent):
    """Gated recurrent units (Cho et al., 2014)."""

    cell = recurrence.GRU


@component
class MinGru(Layered):
    """Gated recurrent units whose gates depend on the inputs alone (Feng et al., 2024).

    With z = σ(W x + b) and n = V x + c, the state is h_t = (1 − z_t) h_{t−1} + z_t n_t.
    So nothing is multiplied step by step, and all steps of a sequence are learned from
    at once. A gate that is to depend on earlier inputs takes a second layer. Units of a
    new memory forget over 2 to 256 steps, evenly on a logarithmic scale: with gates of
    ½, as of zero biases, nothing would last long enough to be learned from.

    References:
        Feng et al., `Were RNNs All We Needed? <https://arxiv.org/abs/2410.01201>`_,
        2024, section 3.1; Tallec and Ollivier, `Can Recurrent Neural Networks Warp
        Time? <https://arxiv.org/abs/1804.11188>`_, 2018, section 2, for the biases.
    """

    def layer(self, name: str) -> nn.Module:
        return _InputGated(self.size, name=name)


class _Units(nn.Module):
    """A recurrent layer over time."""

    cell: Cell
    size: int

    @nn.compact
    def __call__(self, carry, x, reset) -> tuple[State, Array]:
        inputs = dense(self.cell.gates * self.size, name="inputs")(x)
        kernel = self.param("recurrent", _orthogonal_gates, self.size, self.cell.gates)
        return recurrence.over_time(self.cell, kernel, carry, inputs, reset)


class _InputGated(nn.Module):
    """A layer over time whose gates depend on its inputs alone."""

    size: int

    @nn.compact
    def __call__(self, carry, x, reset) -> tuple[State, Array]:
        (before,) = carry
        inputs = dense(2 * self.size, bias_init=_time_scales, name="inputs")(x)
        z, n = jnp.split(inputs.astype(before.dtype), 2, axis=-1)
        z = jax.nn.sigmoid(z)
        kept = jnp.where(reset[..., None], 0.0, 1 - z)
        last, states = linear_recurrence.over_time(kept, z * n, before)
        return (last,), states


def _time_scales(key: Key, shape: tuple[int], dtype: Any) -> Array:
    """Returns biases of gates that forget over so many steps, and zeros."""
    size = shape[0] // 2
    steps = jnp.geomspace(2.0, SLOWEST, size, dtype=dtype)
    return jnp.concatenate([-jnp.log(steps - 1), jnp.zeros(size, dtype)])


def _orthogonal_gates(key: Key, size: int, gates: int) -> Array:
    """Draws an orthogonal matrix per gate, side by side."""
    init, keys = orthogonal(1.0), jax.random.split(key, gates)
    return jnp.concatenate(jax.vmap(lambda key: init(key, (size, size)))(keys), axis=1)

"""Memories: layers between torso and heads, whose carry lasts for an episode."""

from typing import ClassVar

import flax.linen as nn
import jax
import jax.numpy as jnp

from ppo_jax.component import component, require
from ppo_jax.component.bounds import Count
from ppo_jax.errors import missing
from ppo_jax.networks import recurrence
from ppo_jax.networks.layers import dense, orthogonal
from ppo_jax.networks.recurrence import Cell, State
from ppo_jax.types import Array, Carry, Key


@component
class Memory:
    """A layer that turns features into features which depend on earlier ones too.

    A memory of your own is a `Recurrent` with another cell, or a `__call__` in flax
    that goes over time; `selfcheck` shows whether it forgets when an episode begins.
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
class Recurrent(Memory):
    """Recurrent layers, one after the other.

    Attributes:
        size: Number of units of a layer.
        layers: Number of layers.

    >>> @component
    ... class Fading(Recurrent):
    ...     cell = Cell(
    ...         lambda carry, x, recurrent: (0.9 * carry[0] + jnp.tanh(x + recurrent),),
    ...         gates=1,
    ...         states=1,
    ...     )
    """

    size: Count = 64
    layers: Count = 1
    cell: ClassVar[Cell]

    def validate(self) -> None:
        """Raises a `ValueError` for a memory without a `cell`."""
        name = type(self).__name__
        known = hasattr(type(self), "cell")
        require(known, f"{name}.cell", None, "a Cell, which a subclass has")

    def initial_carry(self, num_envs: int) -> Carry:
        one = (jnp.zeros((num_envs, self.size), jnp.float32),) * self.cell.states
        return (one,) * self.layers

    def __call__(self, carry: Carry, x: Array, reset: Array) -> tuple[Carry, Array]:
        after = []
        for layer, before in enumerate(carry):
            units = _Units(self.cell, self.size, name=f"layer_{layer}")
            state, x = units(before, x, reset)
            after.append(state)
        return tuple(after), x


@component
class Lstm(Recurrent):
    """Long short-term memory (Hochreiter and Schmidhuber, 1997)."""

    cell = recurrence.LSTM


@component
class Gru(Recurrent):
    """Gated recurrent units (Cho et al., 2014)."""

    cell = recurrence.GRU


class _Units(nn.Module):
    """A recurrent layer over time."""

    cell: Cell
    size: int

    @nn.compact
    def __call__(self, carry, x, reset) -> tuple[State, Array]:
        inputs = dense(self.cell.gates * self.size, name="inputs")(x)
        kernel = self.param("recurrent", _orthogonal_gates, self.size, self.cell.gates)
        return recurrence.over_time(self.cell, kernel, carry, inputs, reset)


def _orthogonal_gates(key: Key, size: int, gates: int) -> Array:
    """Draws an orthogonal matrix per gate, side by side."""
    init, keys = orthogonal(1.0), jax.random.split(key, gates)
    return jnp.concatenate(jax.vmap(lambda key: init(key, (size, size)))(keys), axis=1)

"""Recurrent layers over time, with one product per sequence wherever one is enough.

A cell moves a carry (…, h), whose last part is its output. It is given the two parts of
its gates: x_t W + b from the inputs, and h_{t−1} U from the output before. The former
is one product over a sequence, and so is the gradient of U. Plain differentiation would
add that gradient up step by step, which with few environments costs more than all the
rest.
"""

import functools
from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp

from ppo_jax.arrays import platforms, tree
from ppo_jax.networks.products import across, kernel_gradient
from ppo_jax.types import Array

STEPS_OF_A_LOOP = {"cpu": 1, "default": 8}
"""Steps that are compiled together: a GPU fuses their parts, and a CPU is slower."""

State = tuple[Array, ...]
"""A carry (…, h), each `[B, H]`."""


class Cell(NamedTuple):
    """A kind of recurrent unit."""

    step: Callable[[State, Array, Array], State]
    """A function from a carry and both parts of the gates, `[B, G]`, to the next
    carry."""
    gates: int
    """Number of gates of a unit, G / H."""
    states: int
    """Number of parts of a carry."""


def _lstm(carry: State, inputs: Array, recurrent: Array) -> State:
    cell, _ = carry
    i, f, g, o = jnp.split(inputs + recurrent, 4, axis=-1)
    cell = jax.nn.sigmoid(f) * cell + jax.nn.sigmoid(i) * jnp.tanh(g)
    return cell, jax.nn.sigmoid(o) * jnp.tanh(cell)


def _gru(carry: State, inputs: Array, recurrent: Array) -> State:
    (h,) = carry
    (r, z, n), (r_h, z_h, n_h) = (
        jnp.split(part, 3, axis=-1) for part in (inputs, recurrent)
    )
    new = jnp.tanh(n + jax.nn.sigmoid(r + r_h) * n_h)
    kept = jax.nn.sigmoid(z + z_h)
    return ((1 - kept) * new + kept * h,)


LSTM = Cell(_lstm, gates=4, states=2)
"""Long short-term memory (Hochreiter and Schmidhuber, 1997), carry (c, h)."""
GRU = Cell(_gru, gates=3, states=1)
"""Gated recurrent units (Cho et al., 2014), reset after the product, carry (h,)."""


@functools.partial(jax.custom_vjp, nondiff_argnums=(0,))
def over_time(
    cell: Cell, kernel: Array, carry: State, inputs: Array, reset: Array
) -> tuple[State, Array]:
    """Runs a layer over a sequence; the carry is cleared before the steps that reset.

    Args:
        cell: The kind of unit.
        kernel: U, `[H, G]`, of the type that products are computed in.
        carry: The carry before the first step, each part `[B, H]`, of the type that
            everything else is computed in: a short type would lose small changes of a
            memory.
        inputs: The inputs' part of the gates, x_t W + b, `[T, B, G]`.
        reset: True where an episode begins, bool `[T, B]`.

    Returns:
        The carry after the last step, and the outputs `[T, B, H]`.
    """
    return _forward(cell, kernel, carry, inputs, reset)[0]


def _forward(cell, kernel, carry, inputs, reset):
    def step(carry, now):
        inputs, reset = now
        carry = _cleared(carry, reset)
        recurrent = carry[-1].astype(kernel.dtype) @ kernel
        new = _moved(cell, carry, _joined(inputs), recurrent)
        return new, (new[-1], carry, _apart(cell, recurrent))

    inputs = _apart(cell, inputs)
    last, (outputs, before, recurrent) = jax.lax.scan(
        step, carry, (inputs, reset), unroll=platforms.chosen(**STEPS_OF_A_LOOP)
    )
    return (last, outputs), (kernel, (before, inputs, recurrent), reset)


def _backward(cell, saved, gradients):
    """Goes from the last step to the first, and then computes the gradient of U."""
    kernel, steps, reset = saved
    d_last, d_outputs = gradients
    kernel = across(kernel)

    def step(d_carry, now):
        d_output, (carry, inputs, recurrent), reset = now
        arguments = carry, _joined(inputs), _joined(recurrent)
        _, pull_back = jax.vjp(functools.partial(_moved, cell), *arguments)
        d_carry, d_inputs, d_recurrent = pull_back(_plus(d_carry, d_output))
        d_carry = _plus(d_carry, d_recurrent @ kernel)
        return _cleared(d_carry, reset), (_apart(cell, d_inputs), d_recurrent)

    d_carry, (d_inputs, d_recurrent) = jax.lax.scan(
        *(step, d_last, (d_outputs, steps, reset)),
        reverse=True,
        unroll=platforms.chosen(**STEPS_OF_A_LOOP),
    )
    (*_, h), _, _ = steps
    rows = tree.merge_leading((h.astype(kernel.dtype), d_recurrent))
    d_kernel = kernel_gradient(*rows)
    return d_kernel, d_carry, _joined(d_inputs), None


over_time.defvjp(_forward, _backward)


def _moved(cell: Cell, carry: State, inputs: Array, recurrent: Array) -> State:
    """Returns the next carry; gates are converted to the type of the carry."""
    dtype = carry[-1].dtype
    return cell.step(carry, inputs.astype(dtype), recurrent.astype(dtype))


def _apart(cell: Cell, gates: Array) -> tuple[Array, ...]:
    """Splits gates: XLA's loops over steps do not vectorise parts of arrays."""
    return tuple(jnp.split(gates, cell.gates, axis=-1))


def _joined(gates: tuple[Array, ...]) -> Array:
    return jnp.concatenate(gates, axis=-1)


def _cleared(carry: State, reset: Array) -> State:
    return tree.where(reset, jax.tree.map(jnp.zeros_like, carry), carry)


def _plus(carry: State, output: Array) -> State:
    """Adds `output` to the last part of a carry, which is its output."""
    return (*carry[:-1], carry[-1] + output)

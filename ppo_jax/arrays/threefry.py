"""Threefry-2x32, the generator of JAX's keys, as operations that are lowered at once.

Its 20 rounds are 120 operations for each shape. Here they are written into a program as
they are, which takes a tenth of the time that tracing them would. On a CPU each draw is
a call that stays one: it is computed once, however many kernels read it.

References:
    Salmon et al., `Parallel Random Numbers: As Easy as 1, 2, 3
    <https://doi.org/10.1145/2063384.2063405>`_, 2011.
"""

from collections.abc import Callable

import jax
import numpy as np
from jax.core import ShapedArray
from jax.extend.core import Primitive
from jax.extend.mlir import ir
from jax.extend.mlir.dialects import stablehlo
from jax.interpreters import batching, mlir
from jax.typing import ArrayLike

from ppo_jax.arrays.calls import kept
from ppo_jax.types import Array

Words = tuple[ir.Value, ir.Value]
"""First and second words, of keys or of what they are hashed to."""
_ROTATIONS = ((13, 15, 26, 6), (17, 29, 16, 24))
_PARITY = 0x1BD11BDA


def bits(key: ArrayLike, size: int) -> Array:
    """Returns hashes of the places 0, 1, … as uint32 `[size]`.

    Args:
        key: The words of a key, uint32 `[2]`.
        size: How many there are to be.

    >>> bits(np.zeros(2, np.uint32), 3).shape
    (3,)
    """
    return kept(_bits.bind(key, size=size))


def words(key: ArrayLike, size: int, *first: ArrayLike) -> Array:
    """Returns both words of the hashes of 0, 1, …, in turn, as uint32 `[size]`.

    Args:
        key: The words of a key, uint32 `[2]`.
        size: How many words there are to be.
        first: What to begin with instead of 0, uint32 `[]`.

    >>> [f"{word:x}" for word in words(np.zeros(2, np.uint32), 2).tolist()]
    ['6b200159', '99ba4efe']
    """
    return kept(_words.bind(key, *first, size=size))


class _Numbers(dict[int, ir.Value]):
    """Constants of a type in a program, by their number."""

    def __init__(self, type: ir.RankedTensorType):
        self._type = type

    def __missing__(self, number: int) -> ir.Value:
        value = ir.IntegerAttr.get(self._type.element_type, number)
        splat = ir.DenseElementsAttr.get_splat(self._type, value)
        return self.setdefault(number, stablehlo.constant(splat))


def _hashed(key: Words, count: ir.Value, number: _Numbers) -> Words:
    """Writes the rounds that hash counts by keys, all of one shape."""

    def rotated(x: ir.Value, distance: int) -> ir.Value:
        left = stablehlo.shift_left(x, number[distance])
        right = stablehlo.shift_right_logical(x, number[32 - distance])
        return stablehlo.or_(left, right)

    parts = (*key, stablehlo.xor(stablehlo.xor(*key), number[_PARITY]))
    x, y = parts[0], stablehlo.add(count, parts[1])
    for i in range(5):
        for distance in _ROTATIONS[i % 2]:
            x = stablehlo.add(x, y)
            y = stablehlo.xor(x, rotated(y, distance))
        x = stablehlo.add(x, parts[(i + 1) % 3])
        y = stablehlo.add(stablehlo.add(y, parts[(i + 2) % 3]), number[i + 1])
    return x, y


def _write_bits(key: Words, place: ir.Value, number: _Numbers) -> ir.Value:
    return stablehlo.xor(*_hashed(key, place, number))


def _write_words(
    key: Words, place: ir.Value, number: _Numbers, *first: ir.Value
) -> ir.Value:
    count = stablehlo.shift_right_logical(place, number[1])
    for each in first:
        count = stablehlo.add(each, count)
    which = stablehlo.and_(place, number[1])
    equal = stablehlo.ComparisonDirectionAttr.get("EQ")
    is_first = stablehlo.compare(which, number[0], equal)
    return stablehlo.select(is_first, *_hashed(key, count, number))


def _operation(name: str, write: Callable[..., ir.Value]) -> Primitive:
    """Makes an operation on the words of keys `[…, 2]` and numbers `[…]`."""
    operation = Primitive(name)
    operation.def_impl(jax.jit(operation.bind, static_argnames="size"))

    @operation.def_abstract_eval
    def shaped(key, *_, size):
        return ShapedArray((*key.shape[:-1], size), np.dtype(np.uint32))

    def batched(axis, args, dims, size):
        args = [
            batching.bdim_at_front(x, dim, axis.size)
            for x, dim in zip(args, dims, strict=True)
        ]
        return operation.bind(*args, size=size), 0

    def lowered(ctx, key, *numbers, size):
        batch = ctx.avals_in[0].shape[:-1]
        axes = [*range(len(batch) + 1)]
        of = ir.RankedTensorType.get((*batch, size), key.type.element_type)

        def word(i):
            begin, strides = [0] * len(batch) + [i], [1] * len(axes)
            one = stablehlo.slice(key, begin, [*batch, i + 1], strides)
            return stablehlo.broadcast_in_dim(of, one, axes)

        place = stablehlo.iota(of, len(batch))
        numbers = [stablehlo.broadcast_in_dim(of, x, axes[:-1]) for x in numbers]
        return [write((word(0), word(1)), place, _Numbers(of), *numbers)]

    batching.fancy_primitive_batchers[operation] = batched
    mlir.register_lowering(operation, lowered, inline=False)
    return operation


_bits = _operation("threefry_bits", _write_bits)
_words = _operation("threefry_words", _write_words)

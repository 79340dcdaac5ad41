"""Order statistics: the k-th smallest of many numbers, found without sorting.

A number is found bit by bit, the highest bit first. Each of 32 steps counts how many
numbers are below the one tried (radix selection; Knuth, The Art of Computer Programming
3, 5.3.3). The result is the number that a sort would give, to the bit. On a CPU a sort
takes many times as long. No gradient flows into any argument.
"""

import jax
import jax.numpy as jnp
import numpy as np
from jax.typing import ArrayLike

from ppo_jax.types import Array

_BITS = 32
_SIGN = np.uint32(1 << _BITS - 1)


def smallest(x: Array, ranks: Array, valid: Array | None = None) -> Array:
    """Returns the numbers of the given ranks; rank 0 is the least number.

    Args:
        x: Numbers `[...]`, float32; they may be anything, even NaN, where not valid.
        ranks: Whole numbers ≥ 0, int32 `[R]`.
        valid: Whether each number counts, bool `[...]`; all by default.

    Returns:
        Float32 `[R]`; NaN for a rank beyond the last.

    >>> smallest(jnp.array([3.0, -1.0, 2.0]), jnp.array([0, 2, 3])).tolist()
    [-1.0, 3.0, nan]
    """
    codes = _ascending(jax.lax.stop_gradient(x)).reshape(1, -1)
    counts = True if valid is None else valid.reshape(1, -1)

    def with_bit(i, found):
        tried = found | jnp.uint32(1) << (_BITS - 1 - i).astype(jnp.uint32)
        below = jnp.sum(counts & (codes < tried[:, None]), axis=1)
        return jnp.where(below <= ranks, tried, found)

    nothing = jnp.zeros(ranks.shape, jnp.uint32)
    return _number(jax.lax.fori_loop(0, _BITS, with_bit, nothing))


def quantile(x: Array, q: ArrayLike) -> Array:
    """Returns the q-quantile of numbers `[...]`, linearly interpolated, float32 `[]`.

    >>> float(quantile(jnp.array([3.0, 1.0, 2.0, 0.0]), 0.5))
    1.5
    """
    place = jnp.asarray(q, jnp.float32) * (x.size - 1)
    lower, upper = jnp.floor(place), jnp.ceil(place)
    ranks = jnp.stack([lower, upper]).astype(jnp.int32)
    low, high = smallest(x, jnp.minimum(ranks, x.size - 1))
    return low * (1 - (place - lower)) + high * (place - lower)


def median(x: Array, valid: Array) -> Array:
    """Returns the median of the valid numbers, float32 `[]`; NaN if none is valid.

    Both arguments are `[...]`.

    >>> float(median(jnp.array([3.0, 9.0, jnp.nan]), jnp.array([True, True, False])))
    6.0
    """
    count = valid.sum()
    low, high = smallest(x, jnp.stack([(count - 1) // 2, count // 2]), valid)
    return jnp.where(count > 0, low / 2 + high / 2, jnp.nan)


def _ascending(x: Array) -> Array:
    """Returns codes, uint32 `[...]`, that are ordered as the numbers are."""
    bits = jax.lax.bitcast_convert_type(jnp.asarray(x, jnp.float32), jnp.uint32)
    return jnp.where(bits >= _SIGN, ~bits, bits | _SIGN)


def _number(codes: Array) -> Array:
    """Returns the numbers that have the given codes; undoes `_ascending`."""
    bits = jnp.where(codes >= _SIGN, codes ^ _SIGN, ~codes)
    return jax.lax.bitcast_convert_type(bits, jnp.float32)

"""Noise to add to updates: its units, and its generators."""

import math
from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.typing import ArrayLike

from ppo_jax.arrays.keys import fused
from ppo_jax.component import require_number
from ppo_jax.component.bounds import DECAY, FINITE_NON_NEGATIVE, optional
from ppo_jax.transforms.leaves import norm
from ppo_jax.types import Array, Key, PyTree

NoiseScale = Callable[[Array, Array], Array]
"""Function from a leaf's gradient and direction to the unit `[]` of its noise."""

Sampler = Callable[[Key, tuple[int, ...]], Array]
"""Function from a key and a shape to independent numbers, float32.

Their mean is 0 and their variance 1.
"""


class NoiseState(NamedTuple):
    """The size of the noise; the state never holds a key."""

    unit: PyTree  # Moving mean from 0 of each leaf's unit, not bias-corrected, float32.
    std: PyTree  # Deviation of the last update's noise, one scalar per leaf.
    to_signal: Array  # Norm of that noise over the direction's; shape=().


class Noise(NamedTuple):
    """A source of noise in the shape of directions.

    Attributes:
        init: Function from parameters to a state.
        draw: Function from directions, gradients, the state, the number of the step and
            a key to the noise and the next state.
    """

    init: Callable[[PyTree], NoiseState]
    draw: Callable[
        [PyTree, PyTree, NoiseState, Array, Key | None], tuple[PyTree, NoiseState]
    ]


def fixed(gradient: Array, direction: Array) -> Array:
    """Returns 1, the unit of noise that has the size σ itself."""
    return jnp.ones((), jnp.float32)


def gradient_norm(gradient: Array, direction: Array) -> Array:
    """Returns the L2 norm of the leaf's gradient as the unit of noise.

    It is a norm and not a root mean square: the noise of a leaf with n elements is
    σ √n times its gradient.

    >>> float(gradient_norm(jnp.array([3.0, 4.0]), jnp.zeros(2)))
    5.0
    """
    return jnp.sqrt(jnp.sum(gradient**2))


def relative(gradient: Array, direction: Array) -> Array:
    """Returns the root mean square of the leaf's direction as the unit of noise.

    The ratio of noise to direction is σ, however gradients were scaled before.

    >>> float(relative(jnp.zeros(2), jnp.array([1.0, 7.0])))
    5.0
    """
    return jnp.sqrt(jnp.sum(direction**2) / max(direction.size, 1))


def hashed_normal(key: Key, shape: tuple[int, ...]) -> Array:
    """Draws nearly normal numbers: sums of eight bytes of a hash of each index.

    The key seeds a 32-bit finaliser: some twenty integer operations per number, where
    `jax.random.normal` encrypts a counter and inverts the error function. On a
    processor that is the difference between noise that costs several of Adam's steps
    and noise that costs one of them or less. The distribution function differs from
    the normal one by at most 0.005, the kurtosis is 2.85, and no number is beyond ±4.9.
    It is made for perturbing weights: do not draw keys, secrets or tails from it.

    References:
        Wellons, `Hash function prospector
        <https://github.com/skeeto/hash-prospector>`_ (the finaliser).

    >>> x = hashed_normal(jax.random.key(0), (1000, 100))
    >>> f"{x.std():.2f} {(abs(x) < 2).mean():.2f}"
    '1.00 0.95'
    """
    seeds = jax.random.bits(key, (3,), jnp.uint32)
    index = jax.lax.iota(jnp.uint32, math.prod(shape)).reshape(shape)
    first = _mix(_mix(index ^ seeds[0]) ^ seeds[1])
    second = _mix(first ^ seeds[2])
    total = _sum_of_bytes(first) + _sum_of_bytes(second)
    mean, variance = 8 * 255 / 2, 8 * (256**2 - 1) / 12
    return (total.astype(jnp.float32) - mean) / math.sqrt(variance)


def normal_noise(
    sigma: ArrayLike | None,
    beta: ArrayLike = 0.0,
    min_std: ArrayLike = 1e-6,
    scale: NoiseScale = fixed,
    sampler: Sampler = jax.random.normal,
) -> Noise:
    """Makes noise of N(0, max(σ · unit, min_std)²) for every leaf.

    The noise of step t and leaf i is drawn from the key folded with t and i: the caller
    may give a key per step, or always the same key. Groups of leaves that are updated
    separately (`optax.partition`, `optax.masked`) count steps and leaves separately:
    they need keys of their own, or their noise is the same.

    Args:
        sigma: Size σ ≥ 0, finite; 0: no noise; None: no noise, and nothing is computed
            for it.
        beta: Decay in [0, 1) of the moving mean of the unit; 0: the unit of the present
            step.
        min_std: Least standard deviation ≥ 0, finite, of noise that is not off.
        scale: Function that computes the unit.
        sampler: Function that draws numbers of mean 0 and variance 1.

    Raises:
        ValueError: For a known number out of its range; when it draws, without a key.
    """
    require_number("sigma", sigma, *optional(FINITE_NON_NEGATIVE))
    require_number("noise_beta", beta, *DECAY)
    require_number("min_noise_std", min_std, *FINITE_NON_NEGATIVE)

    def init(params):
        # Arrays of their own, since one that is there twice cannot be donated.
        unit, std = (
            jax.tree.map(lambda _: jnp.zeros((), jnp.float32), params) for _ in range(2)
        )
        return NoiseState(unit, std, to_signal=jnp.zeros((), jnp.float32))

    def draw(directions, gradients, state, count, key):
        if sigma is None:
            return state.std, state
        if key is None:
            raise ValueError("update: expected a `key` to draw noise from")
        strength = jnp.asarray(sigma, jnp.float32)
        unit = jax.tree.map(
            lambda e, g, d: beta * e + (1 - beta) * scale(g, d),
            state.unit,
            gradients,
            directions,
        )
        std = jax.tree.map(
            lambda u: jnp.where(strength > 0, jnp.maximum(strength * u, min_std), 0.0),
            unbiased(unit, beta, count),
        )
        noise = jax.tree.map(
            lambda d, k, s: s * sampler(k, d.shape).astype(jnp.float32),
            directions,
            _keys(key, count, directions),
            std,
        )
        return noise, NoiseState(unit, std, _to_signal(std, directions))

    return Noise(init, draw)


def unbiased(moment: PyTree, beta: ArrayLike, count: Array) -> PyTree:
    """Removes the bias of a moving mean that began at 0; 1 − βᵗ keeps its digits.

    >>> f"{unbiased(jnp.float32(0.001), 0.999, jnp.int32(1)):.4f}"
    '1.0000'
    """
    correction = -jnp.expm1(count * jnp.log1p(jnp.asarray(beta, jnp.float32) - 1))
    return jax.tree.map(lambda x: x / correction, moment)


def _mix(x: Array) -> Array:
    """Maps 32-bit words one to one; each bit of the result depends on all bits."""
    x = (x ^ (x >> 16)) * np.uint32(0x21F0AAAD)
    x = (x ^ (x >> 15)) * np.uint32(0xD35A2D97)
    return x ^ (x >> 15)


def _sum_of_bytes(x: Array) -> Array:
    pairs = (x & 0x00FF00FF) + ((x >> 8) & 0x00FF00FF)
    return (pairs & 0xFFFF) + (pairs >> 16)


def _keys(key: Key, count: Array, like: PyTree) -> PyTree:
    """Returns a key for every leaf, different at every step."""
    step = jax.random.fold_in(fused(key), count)
    leaves, structure = jax.tree.flatten(like)
    keys = [jax.random.fold_in(step, i) for i in range(len(leaves))]
    return structure.unflatten(keys)


def _to_signal(std: PyTree, directions: PyTree) -> Array:
    """Returns the expected norm of the noise over the norm of the directions."""
    loud = jax.tree.map(lambda s, d: s * math.sqrt(d.size), std, directions)
    tiny = jnp.finfo(jnp.float32).tiny
    return norm(loud) / jnp.maximum(norm(directions), tiny)

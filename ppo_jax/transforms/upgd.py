"""Utility-gated perturbed gradient descent: it keeps useful weights, others explore."""

from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
import optax
from jax.typing import ArrayLike

from ppo_jax.arrays import counting
from ppo_jax.component import require_number
from ppo_jax.component.bounds import DECAY
from ppo_jax.normalization import order
from ppo_jax.transforms.leaves import extrema, flat, norm
from ppo_jax.transforms.noise import (
    NoiseScale,
    NoiseState,
    Sampler,
    fixed,
    normal_noise,
    unbiased,
)
from ppo_jax.types import Array, Key, Metrics, PyTree

TINY_RANGE = 1e-6
"""Largest relative difference of utilities that counts as rounding."""

Normalize = Callable[[PyTree], PyTree]
"""Function that scales utilities, which are known up to a positive factor.

It keeps their order.
"""

Combine = Callable[[Array, Array, Array], Array]
"""Function from a leaf's direction, noise and gate to its update."""


class GateByUtilityState(NamedTuple):
    """Moving utilities, and measures of the last update; never a key."""

    count: Array  # Updates so far; shape=(), dtype=int32.
    utility: PyTree  # Moving mean of −g·w from 0, not bias-corrected, float32.
    noise: NoiseState
    update_norm: Array  # Norm of the last update; shape=().
    inner: optax.OptState


def min_max(utilities: PyTree) -> PyTree:
    """Scales utilities so that the least of all leaves is −1 and the greatest is 1.

    Shifts and positive factors of all utilities change nothing. If all utilities are
    equal, they become 0.

    >>> min_max({"kernel": jnp.array([0.0, 3.0]), "bias": jnp.array([4.0])})
    {'bias': Array([1.], dtype=float32), 'kernel': Array([-1. ,  0.5], dtype=float32)}
    """
    return _between(utilities, *extrema(utilities))


def quantile_range(utilities: PyTree, q: ArrayLike = 0.01) -> PyTree:
    """Scales as `min_max`, between the q- and the (1 − q)-quantile.

    It is robust to outliers: with many weights, a few outliers span the range of
    `min_max`, which squeezes nearly all others around the middle. It reads all
    utilities 32 times.

    >>> quantile_range(jnp.array([0.0, 1.0, 2.0, 3.0, 1000.0]), q=0.25).tolist()
    [-1.0, -1.0, 0.0, 1.0, 1.0]
    """
    every = flat(utilities)
    return _between(utilities, order.quantile(every, q), order.quantile(every, 1 - q))


def global_max(utilities: PyTree) -> PyTree:
    """Divides utilities by the greatest of all leaves, as in the paper.

    If no utility is positive, a case that the paper leaves open, it divides by the
    largest magnitude, so that the order of weights is never reversed.

    >>> global_max(jnp.array([-1.0, 0.5, 2.0])).tolist()
    [-0.5, 0.25, 1.0]
    >>> global_max(jnp.array([-1.0, -4.0])).tolist()
    [-0.25, -1.0]
    """
    low, high = extrema(utilities)
    magnitude = jnp.maximum(high, -low)
    unit = jnp.where(high > 0, high, jnp.where(magnitude > 0, magnitude, 1.0))
    return jax.tree.map(lambda utility: utility / unit, utilities)


def protecting(direction: Array, noise: Array, gate: Array) -> Array:
    """Returns updates that protect useful weights from both noise and gradients."""
    return (direction + noise) * gate


def non_protecting(direction: Array, noise: Array, gate: Array) -> Array:
    """Returns updates that protect useful weights from noise only."""
    return direction + noise * gate


def gate_by_utility(
    inner: optax.GradientTransformation,
    beta: ArrayLike = 0.999,
    sigma: ArrayLike | None = 1e-3,
    temperature: ArrayLike = 1.0,
    noise_beta: ArrayLike = 0.0,
    min_noise_std: ArrayLike = 1e-6,
    noise_scale: NoiseScale = fixed,
    normalize: Normalize = min_max,
    combine: Combine = protecting,
    sampler: Sampler = jax.random.normal,
) -> optax.GradientTransformationExtraArgs:
    """Gates a direction and noise by the utility of each weight.

    A weight's utility is, to first order, the loss without it less the loss with it.
    With g the incoming gradient, w the weight and d the direction of `inner`,

        U ← β U + (1 − β) (−g · w),
        gate = 1 − sigmoid(normalize(U) / temperature),
        update = (d + ξ) · gate,   ξ ~ N(0, max(σ · unit, min_noise_std)²).

    The bias correction of the paper, Û = U / (1 − βᵗ), is one factor for all weights,
    which cancels in every `normalize` that does not depend on the scale of utilities.
    With `min_max` the gate is in [0.269, 0.731]: no weight is frozen, none is wholly
    exposed, and equal utilities give ½. Extrema span all leaves.

    The result has the sign of the gradients: multiply by −learning rate. The family is
    this one wrapper, with another `inner` and another rest of the chain:

    * UPGD: `gate_by_utility(optax.identity())`,
    * AdaptiveUPGD: `gate_by_utility(optax.scale_by_adam())`,
    * UPGDW: the same with β = b2, then `optax.add_decayed_weights(λ)`.

    Weight decay in front of the learning rate is decoupled: w ← (1 − lr λ) w − lr · … .
    The reference code multiplies by 2 (`optax.scale(2.0)` after this), because the gate
    of an average weight is ½.

    The noise of step t and leaf i is drawn from `key` folded with t and i: the caller
    may give a key per step, or always the same key. Groups of leaves that are updated
    separately (`optax.partition`, `optax.masked`) count steps and leaves separately:
    they need keys of their own, or their noise is the same. Leaves that must not move
    belong to `optax.transforms.selective_transform(…, freeze_mask=…)`: they get no
    noise and take no part in the extrema. A weight keeps its utility where its gradient
    is not finite. Statistics and `inner` work in float32, and the update has the dtype
    of the gradients.

    **With gradient scaling in front** (such as `scale_by_variance`, factor k): `fixed`
    noise keeps its size when the direction shrinks, so that noise over signal grows as
    1 / k for good with `optax.identity`, and for the memory of its moments with
    `optax.scale_by_adam`. `gradient_norm` shrinks with k even where Adam's direction
    does not. `relative` keeps the ratio at σ always.

    Args:
        inner: Transformation of gradients to the direction d.
        beta: Decay β in [0, 1) of the utilities.
        sigma: Size σ ≥ 0 of the noise, finite; 0: no noise; None: no noise is even
            drawn, and the update needs no key.
        temperature: Temperature > 0 of the gates; when it is large, gates are near ½.
        noise_beta: Decay in [0, 1) of the moving mean of the unit of noise; 0: the unit
            of the present step.
        min_noise_std: Least standard deviation ≥ 0, finite, of noise that is not off.
        noise_scale: The unit of noise: `fixed`, `gradient_norm`, `relative`, or a
            function of one's own.
        normalize: Function from utilities to the input of the gate: `min_max`,
            `global_max` as in the paper, `quantile_range`, or a function of one's own,
            whose result must not depend on a positive factor of all utilities.
        combine: `protecting`, `non_protecting`, or a function of one's own.
        sampler: Draws noise of mean 0 and variance 1 for (key, shape):
            `jax.random.normal`, `hashed_normal`, which costs a processor far less, or a
            function of one's own.

    Returns:
        A `optax.GradientTransformationExtraArgs` whose `update` needs `params`, and
        `key` by keyword unless sigma is None. All numbers may be traced.

    Raises:
        ValueError: For a known number out of its range; at an update without `params`
            or without a key that it needs.

    References:
        Elsayed and Mahmood, `Addressing Loss of Plasticity and Catastrophic Forgetting
        in Continual Learning <https://arxiv.org/abs/2404.00781>`_, 2024, algorithm 1.

    >>> upgd = gate_by_utility(optax.identity(), sigma=None)
    >>> params, gradients = jnp.array([1.0, -1.0, 0.0]), jnp.ones(3)
    >>> updates, _ = upgd.update(gradients, upgd.init(params), params)
    >>> [f"{update:.3f}" for update in updates]  # Utilities −1, 1 and 0.
    ['0.731', '0.269', '0.500']

    UPGDW with noise, as any other chain of optax:

    >>> upgdw = optax.chain(
    ...     gate_by_utility(optax.scale_by_adam()),
    ...     optax.add_decayed_weights(0.01),
    ...     optax.scale_by_learning_rate(0.1),
    ... )
    >>> state, key = upgdw.init(params), jax.random.key(0)
    >>> for _ in range(100):
    ...     gradients = jax.grad(lambda w: jnp.sum((w - 2.0) ** 2))(params)
    ...     updates, state = upgdw.update(gradients, state, params, key=key)
    ...     params = optax.apply_updates(params, updates)
    >>> bool(jnp.all(jnp.abs(params - 2.0) < 0.5))
    True
    """
    require_number("beta", beta, *DECAY)
    require_number("temperature", temperature, "a number > 0", lambda x: x > 0)
    inner = optax.with_extra_args_support(inner)
    noise = normal_noise(sigma, noise_beta, min_noise_std, noise_scale, sampler)

    def init_fn(params):
        params = optax.tree.cast(params, jnp.float32)
        return GateByUtilityState(
            count=jnp.zeros((), jnp.int32),
            utility=optax.tree.zeros_like(params),
            noise=noise.init(params),
            update_norm=jnp.zeros((), jnp.float32),
            inner=inner.init(params),
        )

    def update_fn(updates, state, params=None, *, key: Key | None = None, **extra):
        if params is None:
            raise ValueError("update: expected `params`, whose utility it is")
        gradients = optax.tree.cast(updates, jnp.float32)
        params = optax.tree.cast(params, jnp.float32)
        count = counting.add(state.count)
        utility = _moved(state.utility, gradients, params, beta)
        direction, kept = inner.update(gradients, state.inner, params, key=key, **extra)
        drawn, heard = noise.draw(direction, gradients, state.noise, count, key)
        gate = _gates(utility, temperature, normalize)
        gated = jax.tree.map(combine, direction, drawn, gate)
        state = GateByUtilityState(count, utility, heard, norm(gated), kept)
        return jax.tree.map(lambda x, g: jnp.asarray(x, g.dtype), gated, updates), state

    return optax.GradientTransformationExtraArgs(init_fn, update_fn)


def upgd_metrics(
    state: GateByUtilityState,
    beta: ArrayLike,
    temperature: ArrayLike = 1.0,
    normalize: Normalize = min_max,
) -> Metrics:
    """Returns metrics of the utilities, and of the last update.

    Args:
        state: The state after an update; the other arguments are those of
            `gate_by_utility`.
        beta: Decay of the utilities.
        temperature: Temperature of the gates.
        normalize: Function from utilities to the input of the gate.

    Returns:
        Metrics `[]`. A gate counts as saturated if its weight's normalised utility is
        within 1 % of ±1 or beyond.
    """
    low, high = unbiased(extrema(state.utility), beta, jnp.maximum(state.count, 1))
    scaled = flat(normalize(state.utility))
    gate = flat(_gates(state.utility, temperature, normalize))
    return {
        "upgd/utility_min": low,
        "upgd/utility_max": high,
        "upgd/utility_range": high - low,
        "upgd/gate_mean": gate.mean(),
        "upgd/gate_std": gate.std(),
        "upgd/gate_saturated_frac": jnp.mean(jnp.abs(scaled) >= 0.99),
        "upgd/noise_std_mean": flat(state.noise.std).mean(),
        "upgd/noise_to_signal": state.noise.to_signal,
        "upgd/update_norm": state.update_norm,
    }


def _moved(utility: PyTree, g: PyTree, w: PyTree, beta: ArrayLike) -> PyTree:
    """Moves utilities by the gradients of weights; finite utilities stay finite."""

    def move(u, g, w):
        moved = beta * u + (1 - beta) * (-g * w)
        return jnp.where(jnp.isfinite(moved), moved, u)

    return jax.tree.map(move, utility, g, w)


def _between(utilities: PyTree, low: Array, high: Array) -> PyTree:
    """Scales utilities from `low` at −1 to `high` at 1; others are clipped."""
    magnitude = jnp.maximum(jnp.abs(low), jnp.abs(high))
    differ = high - low > TINY_RANGE * magnitude
    width = jnp.where(differ, high - low, 1.0)

    def scale(utility):
        position = jnp.clip((utility - low) / width, 0.0, 1.0)
        return jnp.where(differ, 2 * position - 1, 0.0)

    return jax.tree.map(scale, utilities)


def _gates(utility: PyTree, temperature: ArrayLike, normalize: Normalize) -> PyTree:
    """Returns the gates of weights; the bias of utilities is a factor, and cancels."""
    scaled = normalize(utility)
    return jax.tree.map(lambda x: jax.nn.sigmoid(-x / temperature), scaled)

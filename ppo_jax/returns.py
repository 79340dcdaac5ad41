"""Returns, advantages, and how well values explain them.

Sequences are time-major, `[T, ...]`; every trailing axis is independent.
"""

import functools

import jax
import jax.numpy as jnp

from ppo_jax.arrays import platforms
from ppo_jax.arrays.tree import require_finite
from ppo_jax.arrays.weights import weighted
from ppo_jax.errors import require_alike
from ppo_jax.normalization.observations import TINY, centre
from ppo_jax.types import Array

STEPS_OF_A_KERNEL = {"cpu": 4, "default": 16}
"""Steps of a recurrence that are done at once; a GPU takes longer to begin anything."""
LIMIT = 1e6
"""Largest magnitude of an error δ and of an advantage."""


def gae(
    r_t: Array, discount_t: Array, lambda_t: Array, v_tm1: Array, v_t: Array
) -> tuple[Array, Array]:
    """Generalised advantage estimation.

        δ_t = r_t + discount_t v_t − v_{t−1},   A_{t−1} = δ_t + lambda_t A_t.

    Two masks, since a time limit ends the trace but not the value:
    `discount_t = γ (1 − terminated)` and `lambda_t = γ λ (1 − done)`, where done is
    terminated or truncated. A zero stops exactly: what lies behind it does not matter,
    not even if it is NaN. Any other non-finite number reaches the result. Advantages
    are data to learn from: derivatives by a weight that stops what is not finite are
    NaN.

    Args:
        r_t: Rewards `[T, ...]`.
        discount_t: Weight of the next value `[T, ...]`.
        lambda_t: Weight of the next advantage `[T, ...]`.
        v_tm1: Value of the observation that was acted on `[T, ...]`.
        v_t: Value of the observation that the action led to `[T, ...]`: that of the
            next step or, where done, of the episode's final observation.

    Returns:
        Advantages `[T, ...]`, float32, and where δ or A had to be clipped to ±`LIMIT`,
        bool `[T, ...]`. The target of the value is advantage + `v_tm1`.

    Raises:
        ValueError: If the shapes differ, or if called eagerly with a non-finite number.

    References:
        Schulman et al., `High-Dimensional Continuous Control Using Generalized
        Advantage Estimation <https://arxiv.org/abs/1506.02438>`_, 2016.

    >>> r_t, v_tm1, v_t = jnp.ones(2), jnp.full(2, 0.5), jnp.array([0.5, 2.0])
    >>> truncated = jnp.array([0.9405, 0.0])
    >>> adv_tm1, clipped = gae(r_t, jnp.full(2, 0.99), truncated, v_tm1, v_t)
    >>> [round(float(adv), 5) for adv in adv_tm1]
    [3.32744, 2.48]
    """
    given = dict(
        r_t=r_t, discount_t=discount_t, lambda_t=lambda_t, v_tm1=v_tm1, v_t=v_t
    )
    require_alike(**given)
    require_finite(**given)
    r_t, discount_t, lambda_t, v_tm1, v_t = (
        jnp.asarray(x, jnp.float32) for x in (r_t, discount_t, lambda_t, v_tm1, v_t)
    )
    delta_t, delta_clipped = _clip(r_t + weighted(discount_t, v_t) - v_tm1)

    def step(adv_t, inputs):
        delta_t, lambda_t = inputs
        adv_tm1, clipped = _clip(delta_t + weighted(lambda_t, adv_t))
        return adv_tm1, (adv_tm1, clipped)

    _, (adv_tm1, sum_clipped) = jax.lax.scan(
        *(step, jnp.zeros_like(delta_t[0]), (delta_t, lambda_t)),
        reverse=True,
        unroll=platforms.chosen(**STEPS_OF_A_KERNEL),
    )
    return adv_tm1, delta_clipped | sum_clipped


def to_go(x_t: Array, discount_t: Array) -> Array:
    """Sums of what is still to come, y_t = x_t + discount_t y_{t+1}.

    Args:
        x_t: Numbers of steps `[T, ...]`.
        discount_t: Weight of all that follows a step `[T, ...]`; 0 stops exactly.

    Returns:
        Sums `[T, ...]`, float32; nothing is known of what follows the last step.

    >>> to_go(jnp.array([1.0, 2.0, 4.0]), jnp.array([0.5, 0.0, 0.5])).tolist()
    [2.0, 2.0, 4.0]
    """
    require_alike(x_t=x_t, discount_t=discount_t)
    x_t, discount_t = (jnp.asarray(x, jnp.float32) for x in (x_t, discount_t))

    def step(after, inputs):
        x, discount = inputs
        total = x + weighted(discount, after)
        return total, total

    inputs = x_t, discount_t
    return jax.lax.scan(step, jnp.zeros_like(x_t[0]), inputs, reverse=True)[1]


def standardize(
    adv: Array, weight: Array, axis: int | None = None
) -> tuple[Array, Array]:
    """Brings advantages to mean 0 and deviation 1.

    The deviation is the unbiased one, Σ w (A − mean)² / (Σ w − Σ w² / Σ w), whose
    divisor is n − 1 for n samples of weight 1. Advantages that do not vary beyond
    rounding, std ≤ max(1e-8, 8 ε max |A|) with float32's ε, carry no signal: they
    become exactly 0 instead of amplified rounding errors. They are data to learn from:
    derivatives by advantages that are all equal are NaN.

    Args:
        adv: Advantages, any shape.
        weight: Their weights ≥ 0, of the same shape; without weight anything goes.
        axis: None for one mean and deviation over everything; 0 for one per trailing
            index, for `[T, B]` per environment.

    Returns:
        Standardised advantages, 0 where there is no weight, and whether they were set
        to 0 because they do not vary or are fewer than two: bool, `[]` or `[...]`.

    Raises:
        ValueError: If the shapes differ, if `axis` is neither None nor 0, or if called
            eagerly with a non-finite advantage that has weight.

    >>> adv, flat = standardize(jnp.array([1.0, 2.0, 3.0]), jnp.ones(3))
    >>> adv.round(4).tolist(), bool(flat)
    ([-1.0, 0.0, 1.0], False)
    >>> adv, flat = standardize(jnp.full(3, 0.1), jnp.ones(3))
    >>> adv.tolist(), bool(flat)
    ([0.0, 0.0, 0.0], True)
    """
    require_alike(adv=adv, weight=weight)
    if axis is None:
        columns, zero = standardize(adv.reshape(-1), weight.reshape(-1), axis=0)
        return columns.reshape(adv.shape), zero
    if axis != 0:
        raise ValueError(f"axis: expected None or 0, got {axis!r}")
    valid, weight = weight > 0, weight.astype(jnp.float32)
    adv = jnp.where(valid, adv, 0.0).astype(jnp.float32)
    require_finite(adv=adv)
    largest = weight.max(axis=0, keepdims=True)
    weight = weight / jnp.maximum(largest, TINY)  # Squares neither overflow nor vanish.
    centred, _ = centre(adv, weight)
    total = jnp.maximum(weight.sum(axis=0), TINY)
    freedom = total - (weight**2).sum(axis=0) / total
    square = jnp.sum(weight * centred**2, axis=0)
    std = jnp.sqrt(square / jnp.maximum(freedom, TINY))
    rounding = 8 * jnp.finfo(jnp.float32).eps * jnp.abs(adv).max(axis=0)
    zero = (std <= jnp.maximum(1e-8, rounding)) | (valid.sum(axis=0) < 2)
    scale, still = (jnp.expand_dims(x, 0) for x in (std + 1e-8, zero))
    return jnp.where(still, 0.0, centred / scale), zero


def explained_variance(target: Array, prediction: Array, weight: Array) -> Array:
    """Share of the targets' variance that predictions explain, 1 − Var[y − p] / Var[y].

    Args:
        target: Targets y, any shape; no gradient flows into any argument.
        prediction: Predictions p, of the same shape.
        weight: Their weights ≥ 0, of the same shape; without weight anything goes.

    Returns:
        A number `[]` in [−∞, 1]. NaN, which means unavailable, for fewer than two
        samples, for targets that are all equal, and for non-finite samples.

    >>> y = jnp.array([1.0, 2.0, 3.0, 4.0])
    >>> round(float(explained_variance(y, y.at[3].set(5.0), jnp.ones(4))), 4)
    0.85
    """
    require_alike(target=target, prediction=prediction, weight=weight)
    target, prediction, weight = map(_flat, (target, prediction, weight))

    def square(x):
        return jnp.sum(weight * centre(x, weight)[0] ** 2)

    return _explained(square(target), square(target - prediction), (weight > 0).sum())


def group_index(group: Array, num_groups: int) -> Array:
    """The group that each step counts in, 0 … num_groups + B − 1.

    Args:
        group: What environments report, int32 `[T, B]`.
        num_groups: Groups of their own; a step of none of them, such as −1, counts in
            that of its environment.

    >>> group_index(jnp.array([[0, -1], [1, 1]]), num_groups=2).tolist()
    [[0, 3], [1, 1]]
    """
    own = num_groups + jnp.arange(group.shape[1])[None]
    return jnp.where((group >= 0) & (group < num_groups), group, own)


def explained_variance_by_group(
    target: Array, prediction: Array, weight: Array, group: Array, num_groups: int
) -> tuple[Array, Array]:
    """`explained_variance` of every group apart.

    Args:
        target: Targets `[...]`; no gradient flows into any argument.
        prediction: Predictions, of the same shape.
        weight: Their weights ≥ 0, of the same shape; without weight anything goes.
        group: The group of each, int32 in [0, G), of the same shape.
        num_groups: G.

    Returns:
        The explained variance of every group `[G]`, NaN where it is unavailable, and
        the weight of each group `[G]`.

    >>> y, p = jnp.array([1.0, 3.0, 5.0, 5.0]), jnp.array([2.0, 4.0, 4.0, 6.0])
    >>> ev, weight = explained_variance_by_group(
    ...     y, p, jnp.ones(4), jnp.array([0, 0, 1, 1]), num_groups=2
    ... )
    >>> ev.tolist(), weight.tolist()
    ([1.0, nan], [2.0, 2.0])
    """
    require_alike(target=target, prediction=prediction, weight=weight, group=group)
    target, prediction, weight = map(_flat, (target, prediction, weight))
    valid, group = weight > 0, group.reshape(-1)
    total_of = functools.partial(
        jax.ops.segment_sum, segment_ids=group, num_segments=num_groups
    )
    total = total_of(weight)

    def square(x):
        # Relative to one of them, so that constants have no variance at all.
        least = jax.ops.segment_min(jnp.where(valid, x, jnp.inf), group, num_groups)
        x = jnp.where(valid, x - least[group], 0.0)
        mean = total_of(weight * x) / jnp.maximum(total, TINY)
        return total_of(weight * jnp.where(valid, x - mean[group], 0.0) ** 2)

    samples = total_of(valid.astype(jnp.int32))
    return _explained(square(target), square(target - prediction), samples), total


def _explained(variance: Array, error: Array, samples: Array) -> Array:
    """1 − error / variance, where there are two samples and they vary; else NaN."""
    available = (variance > 0) & (samples >= 2)
    share = error / jnp.where(available, variance, 1.0)
    return jnp.where(available, 1 - share, jnp.nan)


def _flat(x: Array) -> Array:
    """A constant for autodiff, float32 `[N]`."""
    return jax.lax.stop_gradient(x).astype(jnp.float32).reshape(-1)


def _clip(x: Array) -> tuple[Array, Array]:
    """Clips to ±LIMIT and says where; what is not finite is left for all to see."""
    clipped = jnp.isfinite(x) & (jnp.abs(x) > LIMIT)
    return jnp.where(clipped, jnp.sign(x) * LIMIT, x), clipped

"""Variance gradient scaling: smaller steps while gradients are noisy over time."""

from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
import optax
from jax.typing import ArrayLike

from ppo_jax.arrays import counting
from ppo_jax.component import require_number
from ppo_jax.component.bounds import (
    FINITE_NON_NEGATIVE,
    FINITE_POSITIVE,
    POSITIVE_DECAY,
    POSITIVE_SHARE,
)
from ppo_jax.transforms import variance
from ppo_jax.transforms.variance import Moments, Statistic
from ppo_jax.types import Array, Metrics, PyTree

MAX_VARIANCE = 1e6
"""Upper bound of a normalised variance without a cap."""

Aggregate = Callable[[Array, Array], Array]
"""Function from normalised variances and signals of leaves, `[L]`, to a number `[]`."""


class ScaleByVarianceState(NamedTuple):
    """Moving moments of each gradient leaf; no parameters, and no hyper-parameters."""

    count: Array  # Updates so far; shape=(), dtype=int32.
    skipped: Array  # Leaves left out as not finite; shape=(), dtype=int32.
    factor: Array  # Factor of the last update; shape=().
    weight: PyTree  # One scalar per leaf: 1 − βᵗ after t finite gradients.
    mean: PyTree  # One scalar per leaf (`elementwise`: one number per element).
    variance: PyTree  # As `mean`.

    VERSION = 1  # Version of the statistics' meaning, see `statistics`.

    @property
    def moments(self) -> Moments:
        """The moments: weight, mean and variance."""
        return Moments(self.weight, self.mean, self.variance)


def layer_mean(gradient: Array) -> tuple[Array, Array]:
    """Returns the mean of a leaf, so that its variance over time is a scalar per leaf.

    Noise that cancels within a leaf (±a in two halves, symmetric filters, values that a
    normalisation layer centres) is invisible; a pattern that never changes is no noise.
    Gradients of logits cancel, for one; what rounding leaves of their mean is 0.

    >>> [float(x) for x in layer_mean(jnp.array([1.0, -1.0, 3.0]))]
    [1.0, 0.0]
    """
    mean = jnp.mean(gradient)
    largest = jnp.max(jnp.abs(gradient), initial=0.0)
    cancels = jnp.abs(mean) < 8 * jnp.finfo(jnp.float32).eps * largest
    return jnp.where(cancels, 0.0, mean), jnp.zeros((), jnp.float32)


def second_moment(gradient: Array) -> tuple[Array, Array]:
    """Returns the mean of a leaf and the variance within it.

    Its variance is the mean of the squares less the squared mean, over time and leaf
    together: a constant gradient counts as noisy if its elements differ.
    """
    return jnp.mean(gradient), jnp.var(gradient)


def elementwise(gradient: Array) -> tuple[Array, Array]:
    """Returns every element, so that each has a variance over time.

    That sees all noise, and costs two numbers per weight.
    """
    return gradient, jnp.zeros_like(gradient)


def percentile(variance: Array, signal: Array, q: ArrayLike = 0.9) -> Array:
    """Returns the q-quantile over leaves, whatever their size or signal.

    >>> float(percentile(jnp.array([0.0, 1.0, 5.0]), jnp.ones(3), q=0.75))
    3.0
    """
    return jnp.quantile(variance, jnp.asarray(q, jnp.float32))


def pooled(variance: Array, signal: Array) -> Array:
    """Returns the sum of variances over the sum of signals of all leaves.

    So leaves without signal cannot dominate.

    >>> f"{pooled(jnp.array([1.0, 100.0]), jnp.array([0.75, 0.25])):.2f}"
    '25.75'
    """
    share = signal / jnp.maximum(jnp.max(signal), jnp.finfo(jnp.float32).tiny)
    total = jnp.sum(share)
    return jnp.sum(variance * share) / jnp.where(total > 0, total, 1.0)


def scale_by_variance(
    alpha: ArrayLike = 0.1,
    beta: ArrayLike = 0.99,
    eps: ArrayLike = 1e-8,
    cap: ArrayLike | None = 50.0,
    floor: ArrayLike = 0.1,
    warmup_steps: ArrayLike = 100,
    statistic: Statistic = layer_mean,
    aggregate: Aggregate = percentile,
) -> optax.GradientTransformationExtraArgs:
    """Shrinks all gradients by one factor while their noise exceeds their signal.

    With M and V the bias-corrected moving mean and variance of a leaf's `statistic`
    over updates, and S = V + M² its second moment,

        Rᵢ = Vᵢ / (Mᵢ² + eps · Sᵢ),   R = aggregate over leaves i,
        k = clip(1 / (1 + α · min(R, cap)), floor, 1),   g ← k · g.

    The factor of an update comes from the gradients of the updates before it. The
    statistics are of the gradients as they arrive: put the transformation first in a
    chain, before anything that clips or rescales.

    **What is measured.** By default Var_t, the variance over time, of the mean of each
    leaf (`layer_mean`). It takes O(1) memory per tensor and no extra backward passes,
    and it is blind to anticorrelated noise, which cancels in the mean of a leaf.
    `elementwise` sees that noise and costs O(weights) memory; `second_moment` mixes
    variance over time with the spread within a leaf. Every leaf counts once, whatever
    its size.

    **What to expect.** R is a ratio to a squared mean, which is near zero for many
    leaves: with a high percentile it tends to sit above `cap`, where k is constant (see
    `vgs/capped`). A constant k changes nothing after Adam's normalisation, nor where a
    clip by global norm binds anyway.

    Gradients are scaled in float32 and keep their dtype. A leaf that is not finite, or
    whose squares overflow, is left out of the statistics and counted; it comes back
    with its next finite gradient.

    Args:
        alpha: Strength α ≥ 0, finite; 0 leaves gradients as they are.
        beta: Decay β in (0, 1) of the moving moments.
        eps: Guard > 0 of the ratio, relative to the second moment: R is at most 1 / eps
            and does not depend on the scale of the gradients.
        cap: Bound > 0 on R; None: 10⁶.
        floor: Least factor, in (0, 1].
        warmup_steps: Number of updates, ≥ 0, with a factor of 1.
        statistic: Function from a leaf to the numbers that are followed over time:
            `layer_mean`, `second_moment`, `elementwise`, or a function of one's own.
        aggregate: Function that summarises leaves: `percentile`, `pooled`, or a
            function of one's own.

    Returns:
        A `optax.GradientTransformationExtraArgs`. All numbers may be traced.

    Raises:
        ValueError: For a known number out of its range.

    References:
        Faghri et al., `A Study of Gradient Variance in Deep Learning
        <https://arxiv.org/abs/2007.04532>`_, 2020 (the normalised variance).

    >>> vgs = scale_by_variance(warmup_steps=0)
    >>> state = vgs.init(jnp.zeros(2))
    >>> for gradient in (1.0, 3.0):
    ...     _, state = vgs.update(jnp.full(2, gradient), state)
    >>> _, state = vgs.update(jnp.ones(2), state)
    >>> print(f"{state.factor:.4f}")  # M = 2.005, V = 1: 1 / (1 + 0.1 · 0.2487)
    0.9757
    """
    require_number("alpha", alpha, *FINITE_NON_NEGATIVE)
    require_number("beta", beta, *POSITIVE_DECAY)
    require_number("eps", eps, *FINITE_POSITIVE)
    require_number("cap", cap, "a number > 0, or None", lambda x: x > 0)
    require_number("floor", floor, *POSITIVE_SHARE)
    require_number("warmup_steps", warmup_steps, "a number ≥ 0", lambda x: x >= 0)

    def init_fn(params):
        return ScaleByVarianceState(
            jnp.zeros((), jnp.int32),
            jnp.zeros((), jnp.int32),
            jnp.ones((), jnp.float32),
            *variance.begin(params, statistic),
        )

    def update_fn(updates, state, params=None, **extra_args):
        summary = _summary(state, alpha, eps, cap, floor, warmup_steps, aggregate)
        factor = summary.factor
        scaled = jax.tree.map(
            lambda g: (g.astype(jnp.float32) * factor).astype(g.dtype), updates
        )
        moments, skipped = variance.observe(state.moments, updates, statistic, beta)
        return scaled, ScaleByVarianceState(
            counting.add(state.count),
            counting.add(state.skipped, skipped),
            factor,
            *moments,
        )

    return optax.GradientTransformationExtraArgs(init_fn, update_fn)


def vgs_metrics(
    state: ScaleByVarianceState,
    alpha: ArrayLike,
    eps: ArrayLike,
    cap: ArrayLike | None,
    floor: ArrayLike,
    warmup_steps: ArrayLike,
    aggregate: Aggregate = percentile,
) -> Metrics:
    """Returns metrics of the statistics, and the factor of the next update.

    Args:
        state: The statistics; the other arguments are those of `scale_by_variance`.
        alpha: Strength.
        eps: Guard of the ratio.
        cap: Bound on the normalised variance.
        floor: Least factor.
        warmup_steps: Updates without scaling.
        aggregate: Function that summarises leaves.

    Returns:
        Metrics `[]`, none of which needs the gradients.
    """
    summary = _summary(state, alpha, eps, cap, floor, warmup_steps, aggregate)
    leaves = summary.leaves if summary.leaves.size else jnp.zeros(1, jnp.float32)
    return {
        "train/vgs_scaling_factor_applied": state.factor,
        "vgs/scaling_factor": summary.factor,
        "vgs/normalized_variance": summary.variance,
        "vgs/stochastic_var_p10": jnp.quantile(leaves, 0.1),
        "vgs/stochastic_var_p50": jnp.quantile(leaves, 0.5),
        "vgs/stochastic_var_p90": jnp.quantile(leaves, 0.9),
        "vgs/stochastic_var_mean": jnp.mean(leaves),
        "vgs/capped": summary.capped.astype(jnp.float32),
        "vgs/warmup_active": summary.warming_up.astype(jnp.float32),
        "vgs/skipped_leaves": state.skipped,
        "vgs/step_count": state.count,
    }


class _Summary(NamedTuple):
    """Results of the statistics."""

    leaves: Array  # Normalised variance of each leaf, `[L]`.
    variance: Array  # Normalised variance of all leaves, before the cap.
    factor: Array  # Factor of the next update.
    capped: Array
    warming_up: Array


def _summary(
    state: ScaleByVarianceState,
    alpha: ArrayLike,
    eps: ArrayLike,
    cap: ArrayLike | None,
    floor: ArrayLike,
    warmup_steps: ArrayLike,
    aggregate: Aggregate,
) -> _Summary:
    leaves, signal = variance.normalized(state.moments, eps)
    total = aggregate(leaves, signal) if leaves.size else jnp.zeros((), jnp.float32)
    total = jnp.clip(total, 0.0, MAX_VARIANCE)
    limit = MAX_VARIANCE if cap is None else cap
    warming_up = state.count < warmup_steps
    factor = jnp.clip(1 / (1 + alpha * jnp.minimum(total, limit)), floor, 1.0)
    return _Summary(
        leaves=leaves,
        variance=total,
        factor=jnp.where(warming_up, 1.0, factor).astype(jnp.float32),
        capped=total >= limit,
        warming_up=warming_up,
    )

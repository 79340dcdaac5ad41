"""Weighted moments of batches, and running moments of observations.

Everything is float32, whatever the dtype of the samples.
"""

from collections.abc import Callable

import chex
import jax
import jax.numpy as jnp
from flax import struct
from jax.typing import ArrayLike

from ppo_jax.arrays import counting
from ppo_jax.arrays.tree import require_finite
from ppo_jax.transforms.leaves import flat
from ppo_jax.types import Array, Metrics, PyTree

BLOCK = 2**22
EPS = 1e-8
TINY = 1.2e-38
"""The smallest normal float32: it makes an empty sum's mean 0 instead of NaN."""


@struct.dataclass
class Moments:
    """Mean and variance of every component of an observation.

    The samples are counted as `blocks · BLOCK + rest`: a float32 would stop counting
    single samples at 2²⁴, while this is exact for whole weights up to 2⁵³, and stops
    there.
    """

    mean: PyTree
    """Means, float32, with the structure of an observation."""
    var: PyTree
    """Variances, likewise; divided by the count, not by the count less one."""
    blocks: Array
    """Count of full blocks, int32 `[]`."""
    rest: Array
    """Count of samples beyond full blocks, float32 `[]`, below `BLOCK`."""

    @property
    def count(self) -> Array:
        """Total weight of the samples so far, rounded to float32."""
        return self.blocks * float(BLOCK) + self.rest


def init(obs_spec: PyTree) -> Moments:
    """Returns moments of no samples, with which `normalize` only clips.

    Their mean is 0, their variance 1.

    Args:
        obs_spec: One observation, or its shapes (`jax.ShapeDtypeStruct`).

    Returns:
        Moments of the same structure.

    >>> init(jnp.zeros(3)).var.tolist()
    [1.0, 1.0, 1.0]
    """
    return Moments(
        mean=jax.tree.map(lambda x: jnp.zeros(x.shape, jnp.float32), obs_spec),
        var=jax.tree.map(lambda x: jnp.ones(x.shape, jnp.float32), obs_spec),
        blocks=jnp.zeros((), jnp.int32),
        rest=jnp.zeros((), jnp.float32),
    )


def part(moments: PyTree, select: Callable[[PyTree], PyTree]) -> PyTree:
    """Returns the moments of a part of an observation; `()` of `()`.

    Args:
        moments: `Moments`, or `()` if observations are not normalised.
        select: A function from an observation to the part.
    """
    if moments == ():
        return ()
    return moments.replace(mean=select(moments.mean), var=select(moments.var))


def update(moments: Moments, batch: PyTree, weight: Array | None = None) -> Moments:
    """Merges a batch into running moments.

    With f the batch's share of the total weight and δ the difference of the means,

        mean ← mean + f δ,   var ← (1 − f) var + f var_batch + f (1 − f) δ².

    A component keeps its moments where these overflow: samples beyond 10¹⁹ have no
    variance in float32.

    Args:
        moments: The moments so far.
        batch: Observations, every leaf with the same leading axes, as `[T, B, ...]`.
        weight: Weights ≥ 0 of the observations, `[T, B]`, all 1 by default. Rows
            without weight may hold anything, even NaN; a batch without weight changes
            nothing.

    Returns:
        Moments of all samples together.

    Raises:
        ValueError: If called eagerly with a non-finite observation that has weight.

    References:
        Chan et al., `Updating Formulae and a Pairwise Algorithm for Computing Sample
        Variances <http://i.stanford.edu/pub/cstr/reports/cs/tr/79/773/CS-TR-79-773.pdf>`_,
        1979.

    >>> moments = update(init(jnp.zeros(())), jnp.array([1.0, 3.0]))
    >>> float(moments.mean), float(moments.var), float(moments.count)
    (2.0, 1.0, 2.0)
    """
    if weight is None:
        weight = jnp.ones(_leading_shape(moments.mean, batch))
    weight = weight.astype(jnp.float32)
    added = weight.sum()
    share = added / jnp.maximum(moments.count + added, TINY)

    def merge(mean, var, samples):
        chex.assert_shape(samples, weight.shape + mean.shape)
        rows = samples.astype(jnp.float32).reshape(-1, *mean.shape)
        weights = weight.reshape(-1, *(1 for _ in mean.shape))
        require_finite(batch=jnp.where(weights > 0, rows, 0.0))
        centred, batch_mean = centre(rows, weights)
        batch_var = jnp.sum(weights * centred**2, axis=0) / jnp.maximum(added, TINY)
        delta = batch_mean - mean
        spread = (1 - share) * var + share * batch_var
        spread += share * (1 - share) * delta**2
        finite = jnp.isfinite(spread)
        mean = jnp.where(finite, mean + share * delta, mean)
        return mean, jnp.where(finite, spread, var)

    merged = jax.tree.map(merge, moments.mean, moments.var, batch)
    mean, var = jax.tree.transpose(
        jax.tree.structure(moments.mean), jax.tree.structure((0, 0)), merged
    )
    rest = moments.rest + added
    full = jnp.floor(rest / BLOCK)
    blocks = counting.add(moments.blocks, full.astype(jnp.int32))
    return Moments(mean=mean, var=var, blocks=blocks, rest=rest - full * BLOCK)


def normalize(moments: PyTree, x: PyTree, clip: ArrayLike | None = 10.0) -> PyTree:
    """Normalises observations to mean 0 and variance 1, and clips them to ±`clip`.

    Args:
        moments: `Moments` of the observations; they are only read.
        x: Observations with any leading axes, of any real dtype.
        clip: Largest magnitude of the result; may be traced. None: nothing is done.

    Returns:
        Float32 observations of the same shapes.

    Raises:
        AssertionError: If trailing axes are not those of the moments.

    >>> moments = update(init(jnp.zeros(())), jnp.array([1.0, 3.0]))
    >>> normalize(moments, jnp.array([3, 99])).round(4).tolist()
    [1.0, 10.0]
    """
    if clip is None:
        return x

    def one(mean, var, x):
        chex.assert_shape(x, (..., *mean.shape))
        mean, var = (
            jnp.expand_dims(moment, range(x.ndim - moment.ndim))
            for moment in (mean, var)
        )
        scaled = (x.astype(jnp.float32) - mean) / jnp.sqrt(var + EPS)
        return jnp.clip(scaled, -bound, bound)

    bound = jnp.asarray(clip, jnp.float32)
    return jax.tree.map(one, moments.mean, moments.var, x)


def drift(old: Moments, new: Moments) -> Metrics:
    """Returns the change of the moments, in units of the old standard deviation.

    Returns:
        Two metrics `[]`: mean absolute change of the means and of the deviations.

    >>> old = update(init(jnp.zeros(())), jnp.array([1.0, 3.0]))
    >>> moved = drift(old, update(old, jnp.array([5.0])))
    >>> {name: round(float(value), 3) for name, value in moved.items()}
    {'debug/vecnormalize_mean_drift': 1.0, 'debug/vecnormalize_std_drift': 0.633}
    """
    old_std, new_std = (jnp.sqrt(flat(moments.var) + EPS) for moments in (old, new))
    mean_drift = jnp.abs(flat(new.mean) - flat(old.mean)) / old_std
    std_drift = jnp.abs(new_std - old_std) / old_std
    return {
        "debug/vecnormalize_mean_drift": mean_drift.mean(),
        "debug/vecnormalize_std_drift": std_drift.mean(),
    }


def centre(x: Array, weight: Array) -> tuple[Array, Array]:
    """Subtracts the weighted mean over the first axis.

    It takes two passes, after one of the samples was subtracted. So for constants the
    centred samples are exactly 0 and the mean is exactly their value, whatever their
    magnitude and number.

    Args:
        x: Samples `[n, ...]`; anything, even NaN, where the weight is 0.
        weight: Weights ≥ 0, `[n, ...]` or with ones for some of the trailing axes.

    Returns:
        The centred samples `[n, ...]`, 0 where the weight is 0, and the mean `[...]`,
        0 where no sample has weight.

    >>> samples, weight = jnp.array([1.0, 3.0, jnp.nan]), jnp.array([1.0, 1.0, 0.0])
    >>> centred, mean = centre(samples, weight)
    >>> centred.tolist(), float(mean)
    ([-1.0, 1.0, 0.0], 2.0)
    """
    valid = weight > 0
    x = jnp.where(valid, x, 0.0)
    total = jnp.maximum(weight.sum(axis=0, keepdims=True), TINY)

    def average(y):
        return jnp.sum(weight * y, axis=0, keepdims=True) / total

    def less(shift):
        return jnp.where(valid, x - shift, 0.0)

    sample = jnp.max(x, axis=0, keepdims=True, where=valid, initial=-jnp.inf)
    sample = jnp.where(valid.any(axis=0, keepdims=True), sample, 0.0)
    mean = sample + average(less(sample))
    residue = average(less(mean))  # What rounding left in the first pass.
    centred = jnp.where(valid, less(mean) - residue, 0.0)
    return centred, (mean + residue)[0]


def _leading_shape(mean: PyTree, batch: PyTree) -> tuple[int, ...]:
    """Returns the lengths of a batch's axes before the axes of an observation."""
    samples = jax.tree.leaves(batch)[0].shape
    return samples[: len(samples) - jax.tree.leaves(mean)[0].ndim]

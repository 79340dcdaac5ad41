"""Controllers that depend on the critic's explained variance of the returns."""

from typing import Annotated, NamedTuple

import jax.numpy as jnp
from jax.typing import ArrayLike

from ppo_jax.component import component
from ppo_jax.component.bounds import Bound, NonNegative
from ppo_jax.types import Array, Metrics


class Known(NamedTuple):
    """The last finite measurement of something, if there was one.

    >>> last = Known.init().update(jnp.array(0.5)).update(jnp.array(jnp.nan))
    >>> float(last.value), bool(last.known)
    (0.5, True)
    """

    value: Array
    """The last finite measurement, float32 `[]`; 0 before the first one."""
    known: Array
    """Whether there was a finite measurement, bool `[]`."""

    @classmethod
    def init(cls) -> "Known":
        """Returns the state before the first measurement."""
        return cls(jnp.zeros((), jnp.float32), jnp.zeros((), jnp.bool_))

    def update(self, measured: Array) -> "Known":
        """Returns the state after a measurement `[]`; only finite ones count."""
        finite = jnp.isfinite(measured)
        return Known(jnp.where(finite, measured, self.value), self.known | finite)


@component
class PoorValueScale:
    """A smaller coefficient of the value loss while the critic explains little.

    Attributes:
        threshold: Explained variance below which the critic counts as poor.
        scale: Factor ≥ 0 of the coefficient while the critic is poor; a factor > 1
            does not enlarge it.
        floor: Least coefficient that the factor may lead to.

    >>> scale = PoorValueScale(threshold=0.0, scale=0.5)
    >>> print(scale(1.8, Known.init().update(jnp.array(-0.2))))
    0.9
    """

    threshold: Annotated[float, Bound("a number ≤ 1", lambda x: x <= 1)] = 0.0
    scale: NonNegative[float] = 1.0
    floor: NonNegative[float] = 0.0

    def __call__(self, coef: ArrayLike, explained_variance: Known) -> Array:
        """Returns the coefficient in force, float32 `[]`.

        It is `coef` itself if the explained variance is not known.
        """
        coef = jnp.asarray(coef, jnp.float32)
        reduced = jnp.minimum(coef, jnp.maximum(coef * self.scale, self.floor))
        known = explained_variance.known
        poor = known & (explained_variance.value < self.threshold)
        return jnp.where(poor, reduced, coef)


@component
class ClipGate:
    """A gate that turns value clipping off early in training and for a poor critic.

    Clipping slows down a critic that still has far to go.

    Attributes:
        warmup_updates: Updates without clipping.
        threshold: Least explained variance for clipping, in [−1, 1]; None: any.

    >>> gate = ClipGate(warmup_updates=10, threshold=0.2)
    >>> bool(gate(jnp.array(10), Known.init().update(jnp.array(0.2))))
    True
    """

    warmup_updates: NonNegative[float] = 0.0
    threshold: Annotated[
        float | None, Bound("a number in [−1, 1]", lambda x: -1 <= x <= 1)
    ] = None

    def __call__(self, updates: Array, explained_variance: Known) -> Array:
        """Returns whether to clip, bool `[]`.

        Args:
            updates: Number of finished updates `[]`.
            explained_variance: Explained variance of the update before; an unknown one
                counts as poor.
        """
        warm, good = self._passed(updates, explained_variance)
        return warm & good

    def metrics(self, updates: Array, explained_variance: Known) -> Metrics:
        """Returns whether the gate is open, and its conditions, as metrics `[]`."""
        warm, good = self._passed(updates, explained_variance)
        known, last = explained_variance.known, explained_variance.value
        return {
            "train/vf_clip_active": (warm & good).astype(jnp.float32),
            "train/vf_clip_warmup_active": (~warm).astype(jnp.float32),
            "train/vf_clip_ev_gate_active": (~good).astype(jnp.float32),
            "train/vf_clip_last_ev": jnp.where(known, last, jnp.nan),
        }

    def _passed(self, updates: Array, explained_variance: Known) -> tuple[Array, Array]:
        """Returns whether the warm-up is over and whether the critic is good enough."""
        warm = updates >= self.warmup_updates
        if self.threshold is None:
            return warm, jnp.array(True)
        good = explained_variance.value >= self.threshold
        return warm, explained_variance.known & good

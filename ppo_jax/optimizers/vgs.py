"""Variance gradient scaling in front of an optimiser."""

import optax

from ppo_jax.component import component
from ppo_jax.component.bounds import (
    FiniteNonNegative,
    FinitePositive,
    Natural,
    Positive,
    PositiveDecay,
    PositiveShare,
    Share,
)
from ppo_jax.transforms import vgs
from ppo_jax.transforms.variance import Statistic
from ppo_jax.types import Array, Metrics


@component
class VGS:
    """Variance gradient scaling: one factor ≤ 1 for all gradients, before the clip.

    The factor falls with the variance over time of each leaf's mean gradient, relative
    to the square of its mean; `ppo_jax.transforms.vgs` explains what that is blind to.
    With UPGD behind VGS, noise is relative to the direction unless set otherwise.

    Attributes:
        alpha: Strength ≥ 0; 0: no scaling.
        beta: Decay of the statistics, in (0, 1).
        eps: Guard of the ratio, > 0, relative to the second moment.
        cap: Bound on the normalised variance, > 0; None: 10⁶.
        floor: Least factor, in (0, 1].
        quantile: Level of the quantile over leaves, in [0, 1]; None: leaves are pooled.
        warmup_steps: Optimiser steps without scaling, ≥ 0.
        statistic: Function from a leaf to the number that is followed over time.

    Raises:
        ValueError: At construction, for a number out of its range.
    """

    alpha: FiniteNonNegative[float] = 0.1
    beta: PositiveDecay[float] = 0.99
    eps: FinitePositive[float] = 1e-8
    cap: Positive[float | None] = 50.0
    floor: PositiveShare[float] = 0.1
    quantile: Share[float | None] = 0.9
    warmup_steps: Natural = 100
    statistic: Statistic = vgs.layer_mean

    def transformation(self) -> optax.GradientTransformationExtraArgs:
        """Returns the transformation, to be put into a chain."""
        return vgs.scale_by_variance(
            beta=self.beta, statistic=self.statistic, **self._numbers()
        )

    def metrics(self, state: vgs.ScaleByVarianceState) -> Metrics:
        """Returns metrics of the statistics, and the factor of the next step."""
        return vgs.vgs_metrics(state, **self._numbers())

    def _numbers(self) -> dict:
        return {
            "alpha": self.alpha,
            "eps": self.eps,
            "cap": self.cap,
            "floor": self.floor,
            "warmup_steps": self.warmup_steps,
            "aggregate": self._aggregate,
        }

    def _aggregate(self, variance: Array, signal: Array) -> Array:
        if self.quantile is None:
            return vgs.pooled(variance, signal)
        return vgs.percentile(variance, signal, self.quantile)

"""Optimisers as components, so that all their numbers may be traced.

A component builds a chain without a learning rate: variance scaling, clip, direction,
decoupled weight decay. Whoever applies the updates multiplies by `learning_rate`,
which can therefore change at any step and keep the moments.

The bases of an optimiser name the links of its direction from the last to the first:
`UPGDW(Decayed, Gated, Adam)` decays what is gated of Adam's direction.
"""

from collections.abc import Iterator

import jax
import jax.numpy as jnp
import optax

from ppo_jax.component import component, concrete, require_range
from ppo_jax.errors import missing
from ppo_jax.schedules import Linear, Schedule
from ppo_jax.transforms.noise import NoiseScale, Sampler, fixed, relative
from ppo_jax.transforms.upgd import (
    Combine,
    GateByUtilityState,
    Normalize,
    gate_by_utility,
    min_max,
    protecting,
    upgd_metrics,
)
from ppo_jax.transforms.vgs import (
    ScaleByVarianceState,
    Statistic,
    layer_mean,
    percentile,
    pooled,
    scale_by_variance,
    vgs_metrics,
)
from ppo_jax.types import Array, Key, Metrics, PyTree

LOUD_SIGMA = 1e-4
"""Fixed noise above it drowns gradients that were scaled down."""


@component
class VGS:
    """Variance gradient scaling: one factor ≤ 1 for all gradients, before the clip.

    The factor falls with the variance over time of each leaf's mean gradient, relative
    to the square of its mean; `ppo_jax.transforms.vgs` says what that is blind to. With
    UPGD behind it, noise is relative to the direction unless one says otherwise.

    Attributes:
        alpha: Strength ≥ 0; 0: no scaling.
        beta: Decay of the statistics, in (0, 1).
        eps: Guard of the ratio, > 0, relative to the second moment.
        cap: Bound on the normalised variance, > 0; None: 10⁶.
        floor: Least factor, in (0, 1].
        quantile: Which quantile over leaves counts, in [0, 1]; None: leaves are pooled.
        warmup_steps: Optimiser steps without scaling, ≥ 0.
        statistic: What of a leaf is followed over time.

    Raises:
        ValueError: At construction, for a number out of its range.
    """

    alpha: float = 0.1
    beta: float = 0.99
    eps: float = 1e-8
    cap: float | None = 50.0
    floor: float = 0.1
    quantile: float | None = 0.9
    warmup_steps: int = 100
    statistic: Statistic = layer_mean

    def validate(self) -> None:
        """Raises a `ValueError` for a number out of its range."""
        expected = "a number in [0, 1], or None"
        require_range(self, "quantile", expected, lambda x: 0 <= x <= 1)
        self.transformation()

    def transformation(self) -> optax.GradientTransformationExtraArgs:
        """The link of a chain."""
        return scale_by_variance(
            beta=self.beta, statistic=self.statistic, **self._numbers()
        )

    def metrics(self, state: ScaleByVarianceState) -> Metrics:
        """What the statistics say, and the factor of the next step."""
        return vgs_metrics(state, **self._numbers())

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
            return pooled(variance, signal)
        return percentile(variance, signal, self.quantile)


@component
class Optimizer:
    """A chain of gradient transformations and its learning rate.

    Attributes:
        learning_rate: Step size at a schedule of 1, ≥ 0.
        max_grad_norm: Bound on the global norm of the gradients, > 0; None: no bound.
        schedule: Factor of the learning rate as a function of the share of updates that
            are done, i / N: a rate of 0 in the last update would teach nothing.
        vgs: Scaling of gradients before they are clipped; None: not scaled.

    Raises:
        ValueError: At construction, for a number out of its range.
    """

    learning_rate: float = 2.5e-4
    max_grad_norm: float | None = 0.5
    schedule: Schedule = Linear()
    vgs: VGS | None = None

    def validate(self) -> None:
        """Raises a `ValueError` for a number out of its range."""
        require_range(self, "learning_rate", "a number ≥ 0", lambda x: x >= 0)
        # A negative bound would turn the gradients around.
        expected = "a number > 0, or None for no bound"
        require_range(self, "max_grad_norm", expected, lambda x: x > 0)

    def direction(self) -> optax.GradientTransformation:
        """From clipped gradients to updates, but for −learning rate: as they are."""
        return optax.identity()

    def transformation(self) -> optax.GradientTransformationExtraArgs:
        """The chain that turns gradients into updates, but for −learning rate."""
        return optax.chain(*self._links())

    def update(
        self, gradients: PyTree, opt_state: PyTree, params: PyTree, key: Key
    ) -> tuple[PyTree, PyTree, Array]:
        """A step of the chain, and the length of what its last link was given.

        Returns:
            Updates, but for −learning rate; the chain's state after them; and the
            global norm `[]` of the gradients once they were scaled and clipped.
        """
        given, updates, states = gradients, gradients, []
        for link, old in zip(self._links(), opt_state, strict=True):
            given = updates
            updates, new = link.update(given, old, params, key=key)
            states.append(new)
        return updates, tuple(states), optax.tree.norm(given)

    def _links(self) -> tuple[optax.GradientTransformationExtraArgs, ...]:
        """Scaling and clip, if there are any, and the direction."""
        links: list[optax.GradientTransformation] = []
        if self.vgs is not None:
            links.append(self.vgs.transformation())
        if self.max_grad_norm is not None:
            links.append(optax.clip_by_global_norm(self.max_grad_norm))
        links.append(self.direction())
        return tuple(optax.with_extra_args_support(link) for link in links)

    def step_size(self, done: Array) -> Array:
        """The learning rate in force, with that share of the updates done."""
        return self.learning_rate * self.schedule(done)

    def rate_metrics(self, done: Array) -> Metrics:
        """The learning rate in force, and whether its schedule is held at a floor."""
        held = self.schedule.held(done).astype(jnp.float32)
        return {
            "train/learning_rate": self.step_size(done),
            "train/learning_rate_held": held,
        }

    def metrics(self, opt_state: PyTree) -> Metrics:
        """What the chain's states tell, metrics `[]`; the same names every time."""
        if self.vgs is None:
            return {}
        return self.vgs.metrics(_find(opt_state, ScaleByVarianceState))


@component
class Adam(Optimizer):
    """Adam (Kingma and Ba, 2015), with the ε of CleanRL and purejaxrl.

    Attributes:
        b1: Decay of the mean of gradients, in [0, 1).
        b2: Decay of the mean of squares, in [0, 1).
        eps: Guard of the denominator, > 0.
    """

    b1: float = 0.9
    b2: float = 0.999
    eps: float = 1e-5

    def direction(self) -> optax.GradientTransformation:
        return optax.scale_by_adam(b1=self.b1, b2=self.b2, eps=self.eps)


@component
class Sgd(Optimizer):
    """Stochastic gradient descent."""


@component
class Decayed(Optimizer):
    """Another direction with decoupled weight decay (Loshchilov and Hutter, 2019).

    Attributes:
        weight_decay: λ ≥ 0: weights shrink by 1 − learning rate · λ per step.
    """

    weight_decay: float = 0.01

    def validate(self) -> None:
        super().validate()
        require_range(self, "weight_decay", "a number ≥ 0", lambda x: x >= 0)

    def direction(self) -> optax.GradientTransformation:
        decay = optax.add_decayed_weights(self.weight_decay)
        return optax.chain(super().direction(), decay)


@component
class Gated(Optimizer):
    """Utility-gated perturbed descent (Elsayed and Mahmood, 2024) along a direction.

    Weights that matter to the loss move less and get less noise; see
    `ppo_jax.transforms.upgd`. **Noise and VGS**: scaled gradients do not scale fixed
    noise, so that noise over signal would grow as VGS intervenes. With `vgs` noise is
    therefore relative to the direction by default, and fixed noise with
    `sigma` > 10⁻⁴ warns; 5·10⁻⁴ to 10⁻³ is advised for relative noise.

    Attributes:
        sigma: Size of the noise, ≥ 0; 0: no noise; None: not even drawn.
        noise_scale: The unit of noise: `fixed`, `gradient_norm` or `relative`; None:
            `relative` with `vgs`, else `fixed`.
        noise_beta: Decay in [0, 1) of the moving mean of that unit; 0: the present one.
        min_noise_std: Least standard deviation of noise that is not off, ≥ 0.
        temperature: > 0; how far apart gates are.
        step_multiplier: Factor > 0 of the gated update; 2 in the reference code.
        normalize: From utilities to what the gate takes.
        combine: What is gated: `protecting` or `non_protecting`.
        sampler: What draws the noise; `hashed_normal` costs a processor far less.

    Warns:
        UserWarning: At construction, for loud fixed noise behind VGS.
    """

    learning_rate: float = 1e-5
    sigma: float | None = 0.001
    noise_scale: NoiseScale | None = None
    noise_beta: float = 0.0
    min_noise_std: float = 1e-6
    temperature: float = 1.0
    step_multiplier: float = 1.0
    normalize: Normalize = min_max
    combine: Combine = protecting
    sampler: Sampler = jax.random.normal

    def validate(self) -> None:
        super().validate()
        require_range(self, "step_multiplier", "a number > 0", lambda x: x > 0)
        self.direction()

    def advise(self) -> Iterator[str]:
        """Says where VGS shrinks gradients in front of noise that does not shrink."""
        sigma, vgs = self.sigma, self.vgs
        scaled = vgs is not None and concrete(vgs.alpha) and vgs.alpha > 0
        loud = sigma is not None and concrete(sigma) and sigma > LOUD_SIGMA
        if scaled and loud and _noise_scale(self) is fixed:
            name = type(self).__name__
            yield (
                f"{name}.noise_scale: fixed noise of sigma = {sigma} > {LOUD_SIGMA} "
                "does not shrink when VGS scales gradients down; `relative` does"
            )

    def utility_decay(self) -> float:
        """The decay of the utilities, in [0, 1)."""
        raise missing(self, "utility_decay")

    def direction(self) -> optax.GradientTransformation:
        gate = gate_by_utility(
            super().direction(),
            beta=self.utility_decay(),
            sigma=self.sigma,
            temperature=self.temperature,
            noise_beta=self.noise_beta,
            min_noise_std=self.min_noise_std,
            noise_scale=_noise_scale(self),
            normalize=self.normalize,
            combine=self.combine,
            sampler=self.sampler,
        )
        return optax.chain(gate, optax.scale(self.step_multiplier))

    def metrics(self, opt_state: PyTree) -> Metrics:
        gate = upgd_metrics(
            _find(opt_state, GateByUtilityState),
            beta=self.utility_decay(),
            temperature=self.temperature,
            normalize=self.normalize,
        )
        return super().metrics(opt_state) | gate


@component
class AdamW(Decayed, Adam):
    """Adam with decoupled weight decay."""


@component
class UPGD(Decayed, Gated):
    """Utility-gated gradients.

    Attributes:
        beta_utility: Decay of the utilities, in [0, 1).
    """

    weight_decay: float = 0.001
    beta_utility: float = 0.999

    def utility_decay(self) -> float:
        return self.beta_utility


@component
class AdaptiveUPGD(UPGD, Adam):
    """Adam's direction, gated by utilities with a decay of their own."""

    eps: float = 1e-8


@component
class UPGDW(Decayed, Gated, Adam):
    """Adam's direction, gated by utilities that decay as the second moments do.

    Attributes:
        b2: Decay of the mean of squares and of the utilities, in [0, 1).
    """

    learning_rate: float = 1e-4
    eps: float = 1e-8

    def utility_decay(self) -> float:
        return self.b2


def _noise_scale(optimizer: Gated) -> NoiseScale:
    if optimizer.noise_scale is not None:
        return optimizer.noise_scale
    return fixed if optimizer.vgs is None else relative


def _find(opt_state: PyTree, kind: type) -> PyTree:
    """The state of one kind, wherever it is in a chain."""
    states = jax.tree.leaves(opt_state, is_leaf=lambda node: isinstance(node, kind))
    return next(state for state in states if isinstance(state, kind))

"""Optimisers that move a weight less if it matters more to the loss."""

from collections.abc import Iterator

import jax
import optax

from ppo_jax.component import component, concrete
from ppo_jax.component.bounds import Decay, FiniteNonNegative, Positive
from ppo_jax.errors import missing
from ppo_jax.optimizers.optimizer import Adam, Decayed, Optimizer, find_state
from ppo_jax.transforms import upgd
from ppo_jax.transforms.noise import NoiseScale, Sampler, fixed, relative
from ppo_jax.types import Metrics, PyTree

LOUD_SIGMA = 1e-4
"""Largest fixed noise that does not drown gradients which were scaled down."""


@component
class Gated(Optimizer):
    """Utility-gated perturbed descent (Elsayed and Mahmood, 2024) along a direction.

    Weights that matter to the loss move less and get less noise; see
    `ppo_jax.transforms.upgd`. **Noise and VGS**: scaled gradients do not scale fixed
    noise, so that noise over signal would grow as VGS intervenes. With `vgs` noise is
    therefore relative to the direction by default, and fixed noise with
    `sigma` > 10⁻⁴ warns; 5·10⁻⁴ to 10⁻³ is advised for relative noise.

    Attributes:
        sigma: Size of the noise, ≥ 0; 0: no noise; None: no noise is even drawn.
        noise_scale: The unit of noise: `fixed`, `gradient_norm` or `relative`; None:
            `relative` with `vgs`, otherwise `fixed`.
        noise_beta: Decay in [0, 1) of the moving mean of that unit; 0: the unit of the
            present step.
        min_noise_std: Least standard deviation of noise that is not off, ≥ 0.
        temperature: Temperature > 0 of the gates; when it is large, gates are near ½.
        step_multiplier: Factor > 0 of the gated update; 2 in the reference code.
        normalize: Function from utilities to the input of the gate.
        combine: Choice of what is gated: `protecting` or `non_protecting`.
        sampler: Function that draws the noise; `hashed_normal` costs a processor far
            less.

    Warns:
        UserWarning: At construction, for loud fixed noise behind VGS.
    """

    sigma: FiniteNonNegative[float | None] = 0.001
    noise_scale: NoiseScale | None = None
    noise_beta: Decay[float] = 0.0
    min_noise_std: FiniteNonNegative[float] = 1e-6
    temperature: Positive[float] = 1.0
    step_multiplier: Positive[float] = 1.0
    normalize: upgd.Normalize = upgd.min_max
    combine: upgd.Combine = upgd.protecting
    sampler: Sampler = jax.random.normal

    def validate(self) -> None:
        """Raises a `ValueError` for a value from which no direction can be made."""
        self.direction()

    def advise(self) -> Iterator[str]:
        """Yields a warning if VGS shrinks gradients but not the noise behind it."""
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
        """Returns the decay of the utilities, in [0, 1)."""
        raise missing(self, "utility_decay")

    def direction(self) -> optax.GradientTransformation:
        gate = upgd.gate_by_utility(
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
        gate = upgd.upgd_metrics(
            find_state(opt_state, upgd.GateByUtilityState),
            beta=self.utility_decay(),
            temperature=self.temperature,
            normalize=self.normalize,
        )
        return super().metrics(opt_state) | gate


@component
class UPGD(Decayed, Gated):
    """Utility-gated gradients.

    Attributes:
        beta_utility: Decay of the utilities, in [0, 1).
    """

    learning_rate: float = 1e-5
    weight_decay: float = 0.001
    beta_utility: Decay[float] = 0.999

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

"""The coefficient of a penalty that keeps a divergence near a target."""

from typing import NamedTuple

import jax.numpy as jnp
from jax.typing import ArrayLike

from ppo_jax.arrays import tree
from ppo_jax.component import component, concrete, require_range
from ppo_jax.component.bounds import FiniteNonNegative, FinitePositive, Share
from ppo_jax.types import Array, Metrics


class KlPidState(NamedTuple):
    """Memory of a `KlPid`, float32 `[]` each."""

    coefficient: Array
    integral: Array
    error: Array
    """KL − target of the last update. The next three fields are the parts of the last
    move."""
    proportional: Array
    integrated: Array
    derivative: Array


@component
class KlPid:
    """The coefficient of a penalty on KL(π_old ‖ π_new), kept near a target.

    With e = KL − target the coefficient moves by kp e + ki Σe + kd Δe and stays within
    its bounds. The integral is bounded: at most, it moves the coefficient from one
    bound to the other. It leaks while the coefficient is at a bound and the error
    pushes the coefficient further out.

    Attributes:
        target: Divergence in nats.
        initial: First coefficient.
        minimum: Least coefficient.
        maximum: Largest coefficient.
        kp: Gain of the error.
        ki: Gain of its sum.
        kd: Gain of its change.
        leak: Factor in [0, 1] of the integral while it leaks; 1: no leak.

    >>> pid = KlPid(target=0.08)
    >>> print(pid.coefficient(pid.update(pid.init(), 0.16)))
    0.062
    """

    target: FinitePositive[float]
    initial: FiniteNonNegative[float] = 0.01
    minimum: FiniteNonNegative[float] = 1e-4
    maximum: float = 1.0
    kp: FiniteNonNegative[float] = 0.5
    ki: FiniteNonNegative[float] = 0.05
    kd: FiniteNonNegative[float] = 0.1
    leak: Share[float] = 0.9

    def validate(self) -> None:
        """Raises a `ValueError` for bounds out of order."""
        if concrete(self.minimum):
            ordered = f"a number ≥ minimum = {self.minimum}"
            require_range(self, "maximum", ordered, lambda x: x >= self.minimum)

    def init(self) -> KlPidState:
        """Returns the state before the first update."""
        first = jnp.clip(jnp.asarray(self.initial), self.minimum, self.maximum)
        return KlPidState(first.astype(jnp.float32), *jnp.zeros(5, jnp.float32))

    def update(self, state: KlPidState, kl: ArrayLike) -> KlPidState:
        """Returns the state after an update whose mean divergence was `kl` `[]`."""
        kl = jnp.asarray(kl, jnp.float32)
        error = kl - self.target
        integral = self._bounded(state.integral + error)
        parts = (self.kp * error, self.ki * integral, self.kd * (error - state.error))
        wanted = state.coefficient + sum(parts)
        coefficient = jnp.clip(wanted, self.minimum, self.maximum)
        outward = (coefficient >= self.maximum) & (error > 0)
        outward |= (coefficient <= self.minimum) & (error < 0)
        integral = jnp.where(outward, self.leak * integral, integral)
        new = KlPidState(coefficient, integral, error, *parts)
        finite = jnp.isfinite(kl) & jnp.isfinite(coefficient)  # ∞ − ∞ is none.
        return tree.where(finite, new, state)

    def coefficient(self, state: KlPidState) -> Array:
        """Returns the penalty's coefficient in the next update, float32 `[]`."""
        return jnp.clip(state.coefficient, self.minimum, self.maximum)

    def metrics(self, state: KlPidState) -> Metrics:
        """Returns the coefficient and the parts of its last move, `[]` each."""
        return {
            "train/kl_penalty_beta": self.coefficient(state),
            "train/kl_penalty_error": state.error,
            "train/kl_penalty_pid_p": state.proportional,
            "train/kl_penalty_pid_i": state.integrated,
            "train/kl_penalty_pid_d": state.derivative,
        }

    def _bounded(self, integral: Array) -> Array:
        acts = jnp.asarray(self.ki) > 0
        bound = (self.maximum - self.minimum) / jnp.where(acts, self.ki, 1.0)
        return jnp.where(acts, jnp.clip(integral, -bound, bound), 0.0)

"""How far an update may move the policy: early stop, epochs, and a penalty."""

from typing import NamedTuple

import jax.numpy as jnp
from jax.typing import ArrayLike

from ppo_jax import tree
from ppo_jax.component import component, concrete, require_range
from ppo_jax.controllers.smoothing import MovingAverage, Smoothing
from ppo_jax.types import Array, Metrics, PyTree


@component
class EpochBudget:
    """Fewer epochs after an update that was stopped early, more after calm ones.

    Its state is the share of the epochs that are run, float32 `[]`.

    Attributes:
        decay: Factor in (0, 1] of the share after a stop; its inverse when it recovers.
        calm: The share recovers after a divergence below target / `calm`.

    >>> budget = EpochBudget()
    >>> share = budget.update(budget.init(), True, 0.05, target=0.02, num_epochs=4)
    >>> int(budget.epochs(share, num_epochs=4))
    2
    """

    decay: float = 0.5
    calm: float = 1.5

    def validate(self) -> None:
        """Raises a `ValueError` for impossible numbers."""
        require_range(self, "decay", "a number in (0, 1]", lambda x: 0 < x <= 1)
        require_range(self, "calm", "a number ≥ 1", lambda x: x >= 1)

    def init(self) -> Array:
        """The state before the first update: every epoch is run."""
        return jnp.ones(())

    def update(
        self,
        share: Array,
        stopped: ArrayLike,
        kl: ArrayLike,
        *,
        target: ArrayLike,
        num_epochs: int,
    ) -> Array:
        """The share after an update.

        Args:
            share: The share before it.
            stopped: Whether it was stopped early `[]`.
            kl: Its mean divergence `[]`.
            target: The divergence it should not have exceeded.
            num_epochs: Epochs of a full update; one of them is always run.
        """
        recovers = jnp.asarray(kl) < target / self.calm
        recovered = jnp.where(recovers, jnp.minimum(share / self.decay, 1.0), share)
        decayed = jnp.maximum(share * self.decay, 1 / num_epochs)
        return jnp.where(stopped, decayed, recovered)

    def epochs(self, share: Array, num_epochs: int) -> Array:
        """Epochs to run in the next update, int32 `[]`."""
        return jnp.maximum(jnp.round(share * num_epochs), 1).astype(jnp.int32)


@component
class EarlyStop:
    """What ends an update before its last step; this one never does.

    It has a memory from update to update and a state within one.
    """

    def init(self) -> PyTree:
        """The memory before the first update."""
        return ()

    def begin(self, memory: PyTree, num_epochs: int) -> PyTree:
        """The state before the first step of an update of `num_epochs`."""
        del memory, num_epochs
        return ()

    def allows(self, state: PyTree, epoch: ArrayLike) -> Array:
        """Whether a step of an epoch, counted from 0, may be taken, bool `[]`."""
        del state, epoch
        return jnp.array(True)

    def observe(self, state: PyTree, kl: ArrayLike) -> PyTree:
        """The state after an optimiser step.

        Args:
            state: The state before it.
            kl: Estimate of KL(π_old ‖ π_new) over the step's minibatch `[]`.
        """
        del kl
        return state

    def end_epoch(self, state: PyTree) -> PyTree:
        """The state before the first step of the next epoch."""
        return state

    def metrics(self, state: PyTree) -> Metrics:
        """What it tells at the end of an update, `[]` each."""
        del state
        return {}

    def update(self, memory: PyTree, metrics: Metrics, num_epochs: int) -> PyTree:
        """The memory after an update, of which these are the metrics."""
        del metrics, num_epochs
        return memory


class KlStopState(NamedTuple):
    """What a `KlStop` knows within one update."""

    epochs: Array
    """Epochs of this update, int32 `[]`."""
    smoothing: PyTree
    streak: Array
    """Steps in a row above the target, int32 `[]`."""
    exceeded: Array
    """Steps of this epoch above the target, int32 `[]`."""
    steps: Array
    """Steps of this epoch, int32 `[]`."""
    stopped: Array
    """Whether the rest of the update is skipped, bool `[]`."""


@component
class KlStop(EarlyStop):
    """Ends an update early when the policy has moved too far from the old one.

    A step is above the target if its own or the smoothed divergence is. All but
    `stopped` begins anew with every epoch; once stopped, nothing changes any more.

    Attributes:
        target: Divergence KL(π_old ‖ π_new) in nats that a step should not exceed.
        absolute: Stops at once at this multiple of the target; None: never.
        consecutive: Stops after so many steps in a row above it; None: never.
        share: Stops after an epoch with such a share of them; None: never.
        smoothing: Over the steps of an epoch.
        budget: Fewer epochs after an update that was stopped; by default always all.

    >>> stop = KlStop(target=0.02)
    >>> state = stop.observe(stop.begin(stop.init(), num_epochs=4), 0.03)
    >>> bool(state.stopped), bool(stop.end_epoch(state).stopped)
    (False, True)
    """

    target: float
    absolute: float | None = 2.5
    consecutive: float | None = None
    share: float | None = 0.25
    smoothing: Smoothing = MovingAverage()
    budget: EpochBudget = EpochBudget(decay=1.0)

    def validate(self) -> None:
        """Raises a `ValueError` for impossible numbers."""
        require_range(self, "target", "a number > 0", lambda x: x > 0)
        require_range(self, "absolute", "a number > 0, or None", lambda x: x > 0)
        require_range(self, "consecutive", "a number ≥ 1, or None", lambda x: x >= 1)
        within = "a number in (0, 1], or None"
        require_range(self, "share", within, lambda x: 0 < x <= 1)

    def init(self) -> Array:
        return self.budget.init()

    def begin(self, memory: Array, num_epochs: int) -> KlStopState:
        return self._new_epoch(self.budget.epochs(memory, num_epochs), jnp.array(False))

    def allows(self, state: KlStopState, epoch: ArrayLike) -> Array:
        return ~state.stopped & (epoch < state.epochs)

    def observe(self, state: KlStopState, kl: ArrayLike) -> KlStopState:
        kl = jnp.asarray(kl, jnp.float32)
        smoothing = self.smoothing.update(state.smoothing, kl)
        above = jnp.maximum(kl, self.smoothing.value(smoothing)) > self.target
        streak = jnp.where(above, state.streak + 1, 0)
        stopped = state.stopped
        if self.absolute is not None:
            stopped |= kl >= self.absolute * self.target
        if self.consecutive is not None:
            stopped |= streak >= self.consecutive
        exceeded, steps = state.exceeded + above, state.steps + 1
        new = KlStopState(state.epochs, smoothing, streak, exceeded, steps, stopped)
        return tree.where(jnp.isfinite(kl) & ~state.stopped, new, state)

    def end_epoch(self, state: KlStopState) -> KlStopState:
        stopped = state.stopped
        if self.share is not None:
            # A quotient: 3 of 20 steps are exactly the share 0.15, a product is not.
            share = state.exceeded / jnp.maximum(state.steps, 1)
            stopped |= share >= self.share
        return self._new_epoch(state.epochs, stopped)

    def metrics(self, state: KlStopState) -> Metrics:
        return {
            "train/kl_early_stop": state.stopped.astype(jnp.float32),
            "train/target_kl": jnp.asarray(self.target, jnp.float32),
        }

    def update(self, memory: Array, metrics: Metrics, num_epochs: int) -> Array:
        return self.budget.update(
            memory,
            metrics["train/kl_early_stop"] > 0,
            metrics["train/approx_kl"],
            target=self.target,
            num_epochs=num_epochs,
        )

    def _new_epoch(self, epochs: Array, stopped: Array) -> KlStopState:
        zero = jnp.zeros((), jnp.int32)
        return KlStopState(epochs, self.smoothing.init(), zero, zero, zero, stopped)


class KlPidState(NamedTuple):
    """What a `KlPid` remembers; float32 `[]` each."""

    coefficient: Array
    integral: Array
    error: Array


@component
class KlPid:
    """The coefficient of a penalty on KL(π_old ‖ π_new), kept near a target.

    With e = KL − target the coefficient moves by kp e + ki Σe + kd Δe and stays within
    its bounds. The integral is bounded by what can move the coefficient from one bound
    to the other, and leaks while the coefficient is at a bound and the error pushes it
    further out.

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

    target: float
    initial: float = 0.01
    minimum: float = 1e-4
    maximum: float = 1.0
    kp: float = 0.5
    ki: float = 0.05
    kd: float = 0.1
    leak: float = 0.9

    def validate(self) -> None:
        """Raises a `ValueError` for a negative number or bounds out of order."""
        require_range(self, "target", "a number > 0", lambda x: x > 0)
        for field in ("initial", "minimum", "kp", "ki", "kd"):
            require_range(self, field, "a number ≥ 0", lambda x: x >= 0)
        require_range(self, "leak", "a number in [0, 1]", lambda x: 0 <= x <= 1)
        if concrete(self.minimum):
            ordered = f"a number ≥ minimum = {self.minimum}"
            require_range(self, "maximum", ordered, lambda x: x >= self.minimum)

    def init(self) -> KlPidState:
        """The state before the first update."""
        first = jnp.clip(jnp.asarray(self.initial), self.minimum, self.maximum)
        return KlPidState(first.astype(jnp.float32), jnp.zeros(()), jnp.zeros(()))

    def update(self, state: KlPidState, kl: ArrayLike) -> KlPidState:
        """The state after an update whose mean divergence was `kl` `[]`."""
        kl = jnp.asarray(kl, jnp.float32)
        error = kl - self.target
        integral = self._bounded(state.integral + error)
        change = error - state.error
        wanted = state.coefficient + (
            self.kp * error + self.ki * integral + self.kd * change
        )
        coefficient = jnp.clip(wanted, self.minimum, self.maximum)
        outward = (coefficient >= self.maximum) & (error > 0)
        outward |= (coefficient <= self.minimum) & (error < 0)
        integral = jnp.where(outward, self.leak * integral, integral)
        new = KlPidState(coefficient, integral, error)
        return tree.where(jnp.isfinite(kl), new, state)

    def coefficient(self, state: KlPidState) -> Array:
        """The coefficient of the penalty in the next update, float32 `[]`."""
        return state.coefficient

    def _bounded(self, integral: Array) -> Array:
        acts = jnp.asarray(self.ki) > 0
        bound = (self.maximum - self.minimum) / jnp.where(acts, self.ki, 1.0)
        return jnp.where(acts, jnp.clip(integral, -bound, bound), 0.0)

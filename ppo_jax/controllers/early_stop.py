"""Rules that end an update early, and that set the epochs of the next update."""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax.typing import ArrayLike

from ppo_jax.arrays import tree
from ppo_jax.component import component
from ppo_jax.component.bounds import AtLeastOne, Positive, PositiveShare
from ppo_jax.controllers.divergence import K3, Divergence
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

    decay: PositiveShare[float] = 0.5
    calm: AtLeastOne[float] = 1.5

    def init(self) -> Array:
        """Returns the state before the first update: every epoch is run."""
        return jnp.ones((), jnp.float32)

    def update(
        self,
        share: Array,
        stopped: ArrayLike,
        kl: ArrayLike,
        *,
        target: ArrayLike,
        num_epochs: int,
    ) -> Array:
        """Returns the share after an update.

        Args:
            share: The share before the update.
            stopped: Whether the update was stopped early `[]`.
            kl: Mean divergence of the update `[]`.
            target: The divergence that the update should not have exceeded.
            num_epochs: Epochs of a full update; one of them is always run.
        """
        recovers = jnp.asarray(kl) < target / self.calm
        recovered = jnp.where(recovers, jnp.minimum(share / self.decay, 1.0), share)
        decayed = jnp.maximum(share * self.decay, 1 / num_epochs)
        return jnp.where(stopped, decayed, recovered)

    def epochs(self, share: Array, num_epochs: int) -> Array:
        """Returns the number of epochs to run in the next update, int32 `[]`."""
        return jnp.maximum(jnp.round(share * num_epochs), 1).astype(jnp.int32)


@component
class EarlyStop:
    """A rule that ends an update before its last step; the base class never does.

    It has a memory that lasts from update to update, and a state within an update.
    """

    @property
    def reads_old_policy(self) -> bool:
        """Whether the rule reads a metric that needs the policy that acted."""
        return False

    def init(self) -> PyTree:
        """Returns the memory before the first update."""
        return ()

    def begin(self, memory: PyTree, num_epochs: int) -> PyTree:
        """Returns the state before the first step of an update of `num_epochs`."""
        return ()

    def allows(self, state: PyTree, epoch: ArrayLike) -> Array:
        """Returns whether a step of an epoch may be taken, bool `[]`.

        Args:
            state: The state before the step.
            epoch: The epoch, counted from 0.
        """
        return jnp.array(True)

    def observe(self, state: PyTree, metrics: Metrics) -> PyTree:
        """Returns the state after an optimiser step.

        Args:
            state: The state before the step.
            metrics: Means over the step's minibatch, `[]` each.
        """
        return state

    def end_epoch(self, state: PyTree) -> PyTree:
        """Returns the state before the first step of the next epoch."""
        return state

    def metrics(self, memory: PyTree, state: PyTree, metrics: Metrics) -> Metrics:
        """Returns the rule's metrics at the end of an update, `[]` each.

        Args:
            memory: The memory when the update began.
            state: The state after the last step.
            metrics: Means over the steps of the update.
        """
        return {}

    def update(self, memory: PyTree, metrics: Metrics, num_epochs: int) -> PyTree:
        """Returns the memory after an update that had these metrics."""
        return memory


class KlStopState(NamedTuple):
    """State of a `KlStop` within one update."""

    epochs: Array
    """Epochs of this update, int32 `[]`."""
    smoothing: PyTree
    streak: Array
    """Steps in a row above the target, int32 `[]`."""
    exceeded: Array
    """Steps of this epoch above the target, int32 `[]`."""
    steps: Array
    """Steps of this epoch, int32 `[]`."""
    reason: Array
    """The reason that ended the update, int32 `[]`: a number from 1 in `REASONS`, or 0
    if none did."""

    @property
    def stopped(self) -> Array:
        """Whether the rest of the update is skipped, bool `[]`."""
        return self.reason > 0


REASONS = ("absolute", "consecutive", "share")
"""Reasons for which a `KlStop` ends an update; of two at once the first counts."""


@component
class KlStop(EarlyStop):
    """Ends an update early when the policy has moved too far from the old one.

    A step is above the target if its own or the smoothed divergence is. Everything but
    the stop itself starts from scratch with every epoch. Once stopped, nothing changes
    any more.

    Attributes:
        target: Divergence KL(π_old ‖ π_new) in nats that a step should not exceed.
        absolute: Stops at once at this multiple of the target; None: never.
        consecutive: Stops after this many steps in a row above the target; None: never.
        share: Stops after an epoch with this share of steps above the target; None:
            never.
        smoothing: Running average of the divergence over the steps of an epoch.
        divergence: Estimator of the divergence, `K3()`, `K1()` or `ClosedForm()`.
        budget: Fewer epochs after an update that was stopped; by default always all.

    >>> stop = KlStop(target=0.02)
    >>> state = stop.begin(stop.init(), num_epochs=4)
    >>> state = stop.observe(state, {"train/approx_kl": 0.03})
    >>> bool(state.stopped), bool(stop.end_epoch(state).stopped)
    (False, True)
    """

    target: Positive[float]
    absolute: Positive[float | None] = 2.5
    consecutive: AtLeastOne[float | None] = None
    share: PositiveShare[float | None] = 0.25
    smoothing: Smoothing = MovingAverage()
    budget: EpochBudget = EpochBudget(decay=1.0)
    divergence: Divergence = K3()

    @property
    def reads_old_policy(self) -> bool:
        return self.divergence.reads_old_policy

    def init(self) -> Array:
        return self.budget.init()

    def begin(self, memory: Array, num_epochs: int) -> KlStopState:
        epochs = self.budget.epochs(memory, num_epochs)
        state = self._new_epoch(epochs, jnp.zeros((), jnp.int32))
        # All of it depends on the member from the start: a loop that begins with the
        # same for all members is mapped by `jax.vmap` once in vain.
        return jax.tree.map(lambda x: jnp.where(epochs > 0, x, x), state)

    def allows(self, state: KlStopState, epoch: ArrayLike) -> Array:
        return ~state.stopped & (epoch < state.epochs)

    def observe(self, state: KlStopState, metrics: Metrics) -> KlStopState:
        kl = jnp.asarray(metrics[self.divergence.metric], jnp.float32)
        smoothing = self.smoothing.update(state.smoothing, kl)
        above = jnp.maximum(kl, self.smoothing.value(smoothing)) > self.target
        streak = jnp.where(above, state.streak + 1, 0)
        absolute = consecutive = jnp.array(False)
        if self.absolute is not None:
            absolute = kl >= self.absolute * self.target
        if self.consecutive is not None:
            consecutive = streak >= self.consecutive
        reason = jnp.where(absolute, 1, jnp.where(consecutive, 2, 0))
        exceeded, steps = state.exceeded + above, state.steps + 1
        new = KlStopState(state.epochs, smoothing, streak, exceeded, steps, reason)
        return tree.where(jnp.isfinite(kl) & ~state.stopped, new, state)

    def end_epoch(self, state: KlStopState) -> KlStopState:
        reason = state.reason
        if self.share is not None:
            # A quotient: 3 of 20 steps are exactly the share 0.15, a product is not.
            share = state.exceeded / jnp.maximum(state.steps, 1)
            reason = jnp.where(~state.stopped & (share >= self.share), 3, reason)
        return self._new_epoch(state.epochs, reason)

    def metrics(self, memory: Array, state: KlStopState, metrics: Metrics) -> Metrics:
        reasons = {
            f"train/kl_stop_reason/{name}": (state.reason == i).astype(jnp.float32)
            for i, name in enumerate(REASONS, start=1)
        }
        return reasons | {
            "train/kl_early_stop": state.stopped.astype(jnp.float32),
            "train/kl_epoch_factor": memory,
            "train/kl_over_target": metrics[self.divergence.metric] / self.target,
            "train/target_kl": jnp.asarray(self.target, jnp.float32),
        }

    def update(self, memory: Array, metrics: Metrics, num_epochs: int) -> Array:
        return self.budget.update(
            memory,
            metrics["train/kl_early_stop"] > 0,
            metrics[self.divergence.metric],
            target=self.target,
            num_epochs=num_epochs,
        )

    def _new_epoch(self, epochs: Array, reason: Array) -> KlStopState:
        zero = jnp.zeros((), jnp.int32)
        return KlStopState(epochs, self.smoothing.init(), zero, zero, zero, reason)

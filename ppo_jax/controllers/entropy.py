"""The entropy coefficient: it decays once the entropy is flat, and rises in trouble."""

from typing import NamedTuple

import jax.numpy as jnp

from ppo_jax.arrays import counting, tree
from ppo_jax.component import component
from ppo_jax.component.bounds import (
    FiniteAtLeastOne,
    FiniteNonNegative,
    NonNegative,
    Several,
)
from ppo_jax.schedules import rise
from ppo_jax.types import Array, Metrics, PyTree


@component
class Plateau:
    """The condition under which the entropy counts as flat, so that the decay begins.

    Attributes:
        window: Number W of updates over which a line is fitted.
        tolerance: Largest absolute slope, in nats per update.
        min_updates: Updates before which the entropy never counts as flat.
    """

    window: Several = 24
    tolerance: NonNegative[float] = 0.002
    min_updates: NonNegative[float] = 40.0

    def reached(self, window: Array, updates: Array) -> Array:
        """Returns whether the last W entropies are flat, bool `[]`."""
        full = updates >= self.window
        flat = jnp.abs(slope(window)) <= self.tolerance
        return full & flat & (updates >= self.min_updates)


class EntropyState(NamedTuple):
    """Memory of an `EntropySchedule`."""

    window: PyTree
    """The last W entropies, oldest first, `[W]`; `()` without a plateau."""
    updates: Array
    """Updates seen, int32 `[]`."""
    started_at: Array
    """Value of `updates` when the decay began, int32 `[]`; −1 before."""
    bad_streak: Array
    """Updates in a row whose explained variance was negative, int32 `[]`."""


@component
class EntropySchedule:
    """A coefficient that decays linearly, never below a floor.

    With a plateau, the decay begins when the entropy is flat for the first time, and
    goes on even if the entropy moves again. While the critic stays worse than a
    constant, the coefficient is boosted: the policy must not settle on the advice of
    such a critic.

    Attributes:
        initial: Coefficient before the decay.
        final: Coefficient after the decay.
        decay_updates: Length of the decay, in updates.
        floor: Least coefficient, after decay and after boost.
        plateau: Condition that the decay waits for; None: it begins at once.
        boost: Factor ≥ 1 for each bad update in a row beyond `boost_patience`.
        boost_patience: Bad updates in a row that are tolerated.
        boost_cap: Largest coefficient that a boost leads to, as a multiple ≥ 1 of
            `initial`; the coefficient of the decay itself is not capped.

    >>> schedule = EntropySchedule(initial=0.01, final=0.0, decay_updates=2, floor=5e-4)
    >>> state, coefficients = schedule.init(), []
    >>> for entropy in (1.4, 1.3, 1.2):
    ...     coefficients.append(round(float(schedule.coefficient(state)), 6))
    ...     state = schedule.update(state, entropy, explained_variance=0.5)
    >>> coefficients
    [0.01, 0.005, 0.0005]
    """

    initial: FiniteNonNegative[float] = 0.01
    final: FiniteNonNegative[float] = 0.01
    decay_updates: NonNegative[float] = 0.0
    floor: FiniteNonNegative[float] = 0.0
    plateau: Plateau | None = None
    boost: FiniteAtLeastOne[float] = 1.0
    boost_patience: NonNegative[float] = 2.0
    boost_cap: FiniteAtLeastOne[float] = 5.0

    def init(self) -> EntropyState:
        """Returns the state before the first update."""
        return EntropyState(
            window=jnp.zeros(self.plateau.window, jnp.float32) if self.plateau else (),
            updates=jnp.zeros((), jnp.int32),
            started_at=jnp.array(-1 if self.plateau else 0, jnp.int32),
            bad_streak=jnp.zeros((), jnp.int32),
        )

    def update(
        self, state: EntropyState, entropy: Array, explained_variance: Array
    ) -> EntropyState:
        """Returns the state after one more update.

        Args:
            state: The state before the update.
            entropy: Mean entropy of the policy `[]`, in nats.
            explained_variance: Explained variance of the update's returns `[]`; if it
                is not finite, the streak of bad updates stays as it was.
        """
        window, updates = state.window, counting.add(state.updates)
        started_at = state.started_at
        if self.plateau is not None:
            window = jnp.append(window[1:], entropy)
            starts = (started_at < 0) & self.plateau.reached(window, updates)
            started_at = jnp.where(starts, updates, started_at)
        streak = jnp.where(explained_variance < 0, counting.add(state.bad_streak), 0)
        known = jnp.isfinite(explained_variance)
        streak = jnp.where(known, streak, state.bad_streak)
        new = EntropyState(window, updates, started_at, streak)
        return tree.where(jnp.isfinite(entropy), new, state)

    def coefficient(self, state: EntropyState) -> Array:
        """Returns the entropy's coefficient in the next update, float32 `[]`."""
        elapsed = state.updates - state.started_at
        done = jnp.where(state.started_at < 0, 0.0, rise(elapsed, self.decay_updates))
        decayed = (1 - done) * self.initial + done * self.final
        excess = jnp.maximum(state.bad_streak - self.boost_patience, 0.0)
        growth = jnp.asarray(self.boost, jnp.float32) ** excess
        growth = jnp.minimum(growth, jnp.finfo(jnp.float32).max)  # 0 · ∞ is NaN.
        nominal = jnp.maximum(decayed, self.floor)
        boosted = jnp.minimum(nominal * growth, self.boost_cap * self.initial)
        return jnp.maximum(nominal, boosted)

    def metrics(self, state: EntropyState) -> Metrics:
        """Returns the coefficient in force and, with a plateau, the decay's state."""
        metrics = {"train/ent_coef": self.coefficient(state)}
        if self.plateau is None:
            return metrics
        began, full = state.started_at >= 0, state.updates >= self.plateau.window
        start = state.started_at.astype(jnp.float32)
        return metrics | {
            "train/policy_entropy_slope": jnp.where(full, slope(state.window), jnp.nan),
            "train/entropy_plateau": began.astype(jnp.float32),
            "train/entropy_decay_start_update": jnp.where(began, start, jnp.nan),
        }


def slope(series: Array) -> Array:
    """Returns the slope of the least-squares line through equally spaced numbers.

    Args:
        series: At least two numbers, in order, `[W]`.

    Returns:
        Change per step, float32 `[]`.

    >>> float(slope(jnp.array([3.0, 5.0, 7.0])))
    2.0
    """
    step = jnp.arange(series.shape[0], dtype=jnp.float32)
    step -= step.mean()
    series = jnp.asarray(series, jnp.float32)
    return jnp.sum(step * (series - series.mean())) / jnp.sum(step**2)

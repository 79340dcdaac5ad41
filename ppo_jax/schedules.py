"""Factors that follow the progress of training, for numbers that change on a plan.

A factor depends on progress alone: it never restarts, and skipped steps do not delay
it. Progress outside of [0, 1] counts as the nearest end.
"""

from typing import Annotated, Any, NamedTuple, Self

import jax.numpy as jnp
import numpy as np
from jax.typing import ArrayLike

from ppo_jax.component import component, concrete, require_range
from ppo_jax.component.bounds import Bound, FiniteNonNegative
from ppo_jax.errors import missing, require_shape
from ppo_jax.types import Array

SOON = 1e-3
"""Step in progress over which `Bounded.held` looks whether a factor rises."""


class Progress(NamedTuple):
    """Progress of training before an update, in two forms; float32, of the same shape.

    >>> Progress.of([0, 1, 4], total=5).course.tolist()
    [0.0, 0.25, 1.0]
    """

    done: Array
    """i / N, the share of N updates that are done before update i. The learning rate
    follows this share: a rate that ends at 0 would teach nothing in the last update."""
    course: Array
    """i / (N − 1), from 0 at the first update to 1 at the last; 0 if N = 1. All other
    schedules follow this number, and so reach their end."""

    @classmethod
    def of(cls, update: ArrayLike, total: int) -> Self:
        """Returns the progress before an update, or before each of many; on the host.

        Args:
            update: Finished updates `[...]`.
            total: Updates of the whole training.
        """
        update = np.asarray(update, np.float32)
        return cls(_on_host(update / total), _on_host(update / max(total - 1, 1)))

    @classmethod
    def at(cls, share: ArrayLike) -> Self:
        """Returns the same share `[...]` for all schedules and numbers of updates."""
        return cls(_on_host(share), _on_host(share))


@component
class Schedule:
    """A function of progress; the number it belongs to is multiplied by the result."""

    def __call__(self, progress: ArrayLike) -> Array:
        """Returns the factor, float32 `[]`.

        Args:
            progress: `Progress.course`, or `Progress.done` for a learning rate; may be
                traced.
        """
        raise missing(self, "__call__")

    def held(self, progress: ArrayLike) -> Array:
        """Returns whether a floor keeps the factor from falling further, bool `[]`."""
        return jnp.zeros_like(_clipped(progress), bool)


def factor(schedule: Schedule, progress: ArrayLike) -> Array:
    """Returns the factor of a schedule at a progress, `[...]` both.

    Raises:
        Misfit: If the schedule returns anything but a number.

    >>> float(factor(Linear(), 0.25))
    0.75
    """
    found = schedule(progress)
    if not concrete(found):
        name, shape = type(schedule).__name__, jnp.shape(progress)
        require_shape(name, found, shape, "the factor at a progress")
    return found


@component
class Constant(Schedule):
    """The factor 1.

    >>> float(Constant()(0.3))
    1.0
    """

    def __call__(self, progress: ArrayLike) -> Array:
        return jnp.ones_like(_clipped(progress))


@component
class Linear(Schedule):
    """A factor that goes from 1 to `final` on a straight line.

    Attributes:
        final: Factor at the end, ≥ 0.

    >>> float(Linear(final=0.5)(0.5))
    0.75
    """

    final: FiniteNonNegative[float] = 0.0

    def __call__(self, progress: ArrayLike) -> Array:
        progress = _clipped(progress)
        return (1 - progress) + progress * self.final  # Exact at both ends.


@component
class Cosine(Schedule):
    """A factor that goes from 1 to `final` along half a cosine, flat at both ends.

    Attributes:
        final: Factor at the end, ≥ 0.

    References:
        Loshchilov and Hutter, `SGDR: Stochastic Gradient Descent with Warm Restarts
        <https://arxiv.org/abs/1608.03983>`_, 2017.

    >>> float(Cosine()(0.5).round(4))
    0.5
    """

    final: FiniteNonNegative[float] = 0.0

    def __call__(self, progress: ArrayLike) -> Array:
        fall = 0.5 * (1 + jnp.cos(jnp.pi * _clipped(progress)))
        return fall + (1 - fall) * self.final


@component
class Warmup(Schedule):
    """A rise from 0 to 1 on a straight line, then another schedule over the rest.

    As a learning rate it is exactly 0 in the first update, which teaches nothing: a
    rise over one update or less is a rollout that is lost, and no more.

    Attributes:
        fraction: Share of the training that the rise takes, in [0, 1).
        then: Schedule of the rest; its progress goes from 0 to 1 there.

    >>> warmup = Warmup(fraction=0.2, then=Linear())
    >>> [round(float(warmup(progress)), 4) for progress in (0.0, 0.1, 0.2, 0.6, 1.0)]
    [0.0, 0.5, 1.0, 0.5, 0.0]
    """

    fraction: Annotated[float, Bound("a number in [0, 1)", lambda x: 0 <= x < 1)] = 0.05
    then: Schedule = Constant()

    def __call__(self, progress: ArrayLike) -> Array:
        risen = rise(_clipped(progress), self.fraction)
        return jnp.where(risen < 1, risen, factor(self.then, self._rest(progress)))

    def held(self, progress: ArrayLike) -> Array:
        risen = _clipped(progress) >= self.fraction
        return risen & self.then.held(self._rest(progress))

    def _rest(self, progress: ArrayLike) -> Array:
        """Returns the progress of the schedule `then`; negative during the rise."""
        return (_clipped(progress) - self.fraction) / (1 - self.fraction)


@component
class Ramp(Schedule):
    """A straight line from `initial` to `final`, constant before and after.

    Attributes:
        initial: Factor before the line, ≥ 0.
        final: Factor after the line, ≥ 0.
        begin: Progress at which the line begins, ≥ 0.
        length: Progress that the line takes, ≥ 0; 0: a step.

    >>> ramp = Ramp(initial=1.8, final=1.0, begin=0.2, length=0.4)
    >>> [round(float(ramp(progress)), 4) for progress in (0.0, 0.2, 0.4, 0.6, 1.0)]
    [1.8, 1.8, 1.4, 1.0, 1.0]
    """

    initial: FiniteNonNegative[float] = 1.0
    final: FiniteNonNegative[float] = 0.0
    begin: FiniteNonNegative[float] = 0.0
    length: FiniteNonNegative[float] = 1.0

    def __call__(self, progress: ArrayLike) -> Array:
        done = rise(_clipped(progress) - self.begin, self.length)
        return (1 - done) * self.initial + done * self.final  # Exact at both ends.


@component
class Bounded(Schedule):
    """Another schedule, never below `floor` nor above `cap`.

    Attributes:
        schedule: Schedule that is bounded.
        floor: Least factor, ≥ 0.
        cap: Greatest factor, ≥ `floor`.

    >>> bounded = Bounded(Warmup(fraction=0.5, then=Linear()), floor=0.2, cap=0.9)
    >>> [round(float(bounded(progress)), 4) for progress in (0.0, 0.25, 0.5, 0.75, 1.0)]
    [0.2, 0.5, 0.9, 0.5, 0.2]
    """

    schedule: Schedule = Constant()
    floor: FiniteNonNegative[float] = 0.0
    cap: float = 1.0

    def validate(self) -> None:
        """Raises a `ValueError` if `cap` is below `floor`."""
        if concrete(self.floor):
            expected = f"a number ≥ floor = {self.floor}"
            require_range(self, "cap", expected, lambda x: x >= self.floor)

    def __call__(self, progress: ArrayLike) -> Array:
        return jnp.clip(factor(self.schedule, progress), self.floor, self.cap)

    def held(self, progress: ArrayLike) -> Array:
        soon = _clipped(progress) + SOON
        now, later = (factor(self.schedule, each) for each in (progress, soon))
        return (now < self.floor) & (later <= now)


def rise(x: ArrayLike, length: ArrayLike) -> Array:
    """Returns the share of a straight rise that is done, x / length.

    A rise of length 0 is a step at x = 0.

    Args:
        x: Distance from the foot of the rise `[...]`.
        length: Length ≥ 0 of the rise, a scalar; may be traced.

    Returns:
        Share in [0, 1], float32 `[...]`.

    >>> rise(jnp.array([-1.0, 0.0, 5.0, 20.0, 30.0]), 20.0).tolist()
    [0.0, 0.0, 0.25, 1.0, 1.0]
    """
    x = jnp.asarray(x, jnp.float32)
    rising = x < length
    slope = x / jnp.where(rising, length, 1.0)  # Elsewhere the length may be 0.
    return jnp.where(rising, jnp.maximum(slope, 0.0), 1.0)


def _on_host(numbers: ArrayLike) -> Any:
    """Returns float32 on no device yet, so that a program may put it on many."""
    return np.asarray(numbers, np.float32)


def _clipped(progress: ArrayLike) -> Array:
    return jnp.clip(jnp.asarray(progress, jnp.float32), 0.0, 1.0)

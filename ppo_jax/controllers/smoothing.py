"""Running averages of noisy measurements."""

from typing import Any, NamedTuple

import jax.numpy as jnp

from ppo_jax.arrays import counting
from ppo_jax.component import component
from ppo_jax.component.bounds import Count, PositiveShare
from ppo_jax.errors import missing
from ppo_jax.types import Array


@component
class Smoothing:
    """A running average of numbers that come one by one."""

    def init(self) -> Any:
        """Returns the state before the first number."""
        raise missing(self, "init")

    def update(self, state: Any, x: Array) -> Any:
        """Returns the state after one more number `[]`."""
        raise missing(self, "update")

    def value(self, state: Any) -> Array:
        """Returns the average so far, float32 `[]`; 0 before the first number."""
        raise missing(self, "value")


class _Window(NamedTuple):
    last: Array
    """The last W numbers, oldest first, `[W]`; zeros before there were W."""
    count: Array
    """Count of the numbers seen, int32 `[]`."""


@component
class MovingAverage(Smoothing):
    """The mean of the last W numbers, or of all numbers if there were fewer.

    >>> average = MovingAverage(window=2)
    >>> state = average.init()
    >>> for x in (1.0, 2.0, 5.0):
    ...     state = average.update(state, x)
    >>> float(average.value(state))
    3.5
    """

    window: Count = 10

    def init(self) -> _Window:
        return _Window(jnp.zeros(self.window, jnp.float32), jnp.zeros((), jnp.int32))

    def update(self, state: _Window, x: Array) -> _Window:
        return _Window(jnp.append(state.last[1:], x), counting.add(state.count))

    def value(self, state: _Window) -> Array:
        return state.last.sum() / jnp.clip(state.count, 1, self.window)


class _Average(NamedTuple):
    value: Array
    """The average, float32 `[]`."""
    count: Array
    """Count of the numbers seen, int32 `[]`."""


@component
class Ema(Smoothing):
    """An exponential moving average that begins at the first number.

    Attributes:
        rate: Weight of a new number, in (0, 1].
    """

    rate: PositiveShare[float] = 0.2

    def init(self) -> _Average:
        return _Average(jnp.zeros((), jnp.float32), jnp.zeros((), jnp.int32))

    def update(self, state: _Average, x: Array) -> _Average:
        moved = (1 - self.rate) * state.value + self.rate * x
        value = jnp.where(state.count == 0, x, moved)
        return _Average(value, counting.add(state.count))

    def value(self, state: _Average) -> Array:
        return state.value

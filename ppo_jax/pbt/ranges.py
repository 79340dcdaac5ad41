"""Ranges of searched numbers, and rules to draw and move numbers in them."""

import dataclasses
import math
import typing
from typing import Any, TypeVar

import jax
import jax.numpy as jnp

from ppo_jax.component import require, typed
from ppo_jax.errors import missing
from ppo_jax.types import Array, Key

T = TypeVar("T")
SHARE = 0.2
"""Largest share of a range that a number moves by at once, if it moves by a share."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class Range:
    """The range of a number, and the rules by which a population moves it.

    Attributes:
        resample: Probability that `PerturbOrResample` draws a number again instead of
            perturbing it.
    """

    resample: float = 0.25

    def __post_init__(self):
        kind, hints = type(self).__name__, typing.get_type_hints(type(self))
        for field in dataclasses.fields(self):
            given = _plain(getattr(self, field.name))
            typed(self, field.name, hints[field.name], given)
            object.__setattr__(self, field.name, given)  # 1 stays 1: a run tells it so.
        within = "a number in [0, 1]"
        require(0 <= self.resample <= 1, f"{kind}.resample", self.resample, within)

    @property
    def ends(self) -> tuple[float, float]:
        """The least and the largest number."""
        raise missing(self, "ends")

    @property
    def narrow(self) -> bool:
        """Whether two steps by the factor cross the range, so that it has no middle."""
        return False

    def sample(self, key: Key) -> Array:
        """Draws a number from the range, float32 `[]`."""
        raise missing(self, "sample")

    def perturb(self, value: Array, up: Array) -> Array:
        """Returns a neighbour of a number, float32 `[]`.

        Args:
            value: The number, `[]`.
            up: Whether to return the upper of the two neighbours, bool `[]`.
        """
        raise missing(self, "perturb")


@dataclasses.dataclass(frozen=True)
class _Interval(Range):
    low: float
    high: float
    factor: float = dataclasses.field(default=1.2, kw_only=True)

    def __post_init__(self):
        super().__post_init__()
        kind, ends = type(self).__name__, (self.low, self.high)
        finite = all(math.isfinite(end) for end in ends)
        ordered = finite and self.low < self.high
        require(ordered, f"{kind}.low, high", ends, "two finite numbers, low < high")
        usable = 1 < self.factor < math.inf
        require(usable, f"{kind}.factor", self.factor, "a finite number > 1")

    @property
    def ends(self) -> tuple[float, float]:
        return self.low, self.high

    @property
    def narrow(self) -> bool:
        return self.low * self.factor**2 > self.high

    @property
    def share(self) -> float:
        """Share of the range that a number moves by where no factor is used."""
        return min(self.factor - 1, SHARE)

    def _multiplied(self, value: Array, factor: float, up: Array) -> Array:
        return self._clipped(jnp.where(up, value * factor, value / factor))

    def _clipped(self, value: Array) -> Array:
        low, high = jnp.float32(self.low), jnp.float32(self.high)
        return jnp.clip(jnp.asarray(value, jnp.float32), low, high)


@dataclasses.dataclass(frozen=True)
class LogUniform(_Interval):
    """Numbers in [low, high], all orders of magnitude equally likely.

    Attributes:
        low: Least number, > 0.
        high: Largest number.
        factor: A number is perturbed by multiplying or dividing by it. In a range that
            two such steps cross, (high / low) to the power of factor − 1 is used
            instead, with a power of at most a fifth.

    Raises:
        ValueError: At construction, for impossible numbers.

    >>> range_ = LogUniform(0.125, 8.0, factor=2.0)
    >>> [float(range_.perturb(jnp.array(1.0), up)) for up in (False, True)]
    [0.5, 2.0]
    """

    def __post_init__(self):
        super().__post_init__()
        require(self.low > 0, "LogUniform.low", self.low, "a number > 0")

    def perturb(self, value: Array, up: Array) -> Array:
        across = (self.high / self.low) ** self.share
        return self._multiplied(value, across if self.narrow else self.factor, up)

    def sample(self, key: Key) -> Array:
        ends = math.log(self.low), math.log(self.high)
        drawn = jax.random.uniform(key, minval=ends[0], maxval=ends[1])
        return self._clipped(jnp.exp(drawn))


@dataclasses.dataclass(frozen=True)
class Uniform(_Interval):
    """Numbers in [low, high], all equally likely.

    Attributes:
        low: Least number.
        high: Largest number.
        factor: A number is perturbed by multiplying or dividing by it. In a range that
            is not above 0, or that two such steps cross, it moves by (factor − 1) of
            the range's width instead, at most by a fifth.

    Raises:
        ValueError: At construction, for impossible numbers.

    >>> print(Uniform(-400.0, 0.0).perturb(jnp.array(0.0), jnp.array(False)))
    -80.0
    """

    def sample(self, key: Key) -> Array:
        drawn = jax.random.uniform(key, minval=self.low, maxval=self.high)
        return self._clipped(drawn)

    def perturb(self, value: Array, up: Array) -> Array:
        if self.low > 0 and not self.narrow:
            return self._multiplied(value, self.factor, up)
        step = self.share * (self.high - self.low)
        return self._clipped(value + jnp.where(up, step, -step))


@dataclasses.dataclass(frozen=True)
class NearOne(_Interval):
    """Numbers below 1 whose distance from it is log-uniform: γ, λ and decays.

    The effect of a discount or a decay x depends on 1 / (1 − x), the steps that it
    looks ahead or remembers: 0.9, 0.99 and 0.999 are equally far from each other.

    Attributes:
        low: Least number.
        high: Largest number, < 1.
        factor: A number is perturbed by dividing or multiplying its distance from 1 by
            it, as `LogUniform` does.

    Raises:
        ValueError: At construction, for impossible numbers.

    >>> range_ = NearOne(0.0, 0.9375, factor=2.0)
    >>> [float(range_.perturb(jnp.array(0.75), up)) for up in (False, True)]
    [0.5, 0.875]
    """

    def __post_init__(self):
        super().__post_init__()
        require(self.high < 1, "NearOne.high", self.high, "a number < 1")

    @property
    def distance(self) -> LogUniform:
        """The range of 1 − x."""
        return LogUniform(1 - self.high, 1 - self.low, factor=self.factor)

    @property
    def narrow(self) -> bool:
        return self.distance.narrow

    def sample(self, key: Key) -> Array:
        return self._clipped(1 - self.distance.sample(key))

    def perturb(self, value: Array, up: Array) -> Array:
        return self._clipped(1 - self.distance.perturb(1 - value, jnp.logical_not(up)))


@dataclasses.dataclass(frozen=True)
class Choice(Range):
    """A choice of several numbers, in their given order.

    A number is perturbed to a neighbour; at an end it may stay.

    Raises:
        ValueError: At construction, for fewer than two different finite numbers.

    >>> choice = Choice((1.0, 2.0, 4.0))
    >>> [float(choice.perturb(jnp.array(2.0), up)) for up in (False, True)]
    [1.0, 4.0]
    """

    values: tuple[float, ...]

    def __post_init__(self):
        super().__post_init__()
        different = len(set(self.values)) == len(self.values) >= 2
        finite = all(math.isfinite(value) for value in self.values)
        expected = "at least two finite numbers, all different"
        require(different and finite, "Choice.values", self.values, expected)

    @property
    def ends(self) -> tuple[float, float]:
        return min(self.values), max(self.values)

    def sample(self, key: Key) -> Array:
        return jax.random.choice(key, jnp.array(self.values, jnp.float32))

    def perturb(self, value: Array, up: Array) -> Array:
        values = jnp.array(self.values, jnp.float32)
        nearest = jnp.argmin(jnp.abs(values - value))
        index = jnp.clip(nearest + jnp.where(up, 1, -1), 0, len(self.values) - 1)
        return values[index]


def _plain(given: Any) -> Any:
    """Converts numbers of NumPy or JAX to those of Python, and many to a tuple."""
    given = given.tolist() if hasattr(given, "tolist") else given
    return tuple(map(_plain, given)) if isinstance(given, list | tuple) else given

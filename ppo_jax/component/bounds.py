"""Bounds of the numbers of components, given by the types of their fields."""

import math
import typing
from collections.abc import Callable
from types import NoneType, UnionType
from typing import Annotated, Any, NamedTuple, TypeVar

import numpy as np

T = TypeVar("T", float, float | None)


class Bound(NamedTuple):
    """A condition for a number."""

    expected: str
    """The condition in words, for a number that is not optional."""
    holds: Callable[[Any], bool]


FINITE_NON_NEGATIVE = Bound("a finite number ≥ 0", lambda x: 0 <= x < math.inf)
FINITE_POSITIVE = Bound("a finite number > 0", lambda x: 0 < x < math.inf)
FINITE_AT_LEAST_ONE = Bound("a finite number ≥ 1", lambda x: 1 <= x < math.inf)
DECAY = Bound("a number in [0, 1)", lambda x: bool(0 <= np.float32(x) < 1))
POSITIVE_DECAY = Bound("a number in (0, 1)", lambda x: bool(0 < np.float32(x) < 1))
POSITIVE_SHARE = Bound("a number in (0, 1]", lambda x: 0 < x <= 1)

Natural = Annotated[int, Bound("at least 0", lambda x: x >= 0)]
Count = Annotated[int, Bound("at least 1", lambda x: x >= 1)]
Several = Annotated[int, Bound("at least 2", lambda x: x >= 2)]

Number = Annotated[T, Bound("a number", lambda x: x == x)]
Finite = Annotated[T, Bound("a finite number", math.isfinite)]
Whole = Annotated[T, Bound("a whole number", lambda x: x % 1 == 0)]
Positive = Annotated[T, Bound("a number > 0", lambda x: x > 0)]
NonNegative = Annotated[T, Bound("a number ≥ 0", lambda x: x >= 0)]
FiniteNonNegative = Annotated[T, FINITE_NON_NEGATIVE]
FinitePositive = Annotated[T, FINITE_POSITIVE]
AtLeastOne = Annotated[T, Bound("a number ≥ 1", lambda x: x >= 1)]
FiniteAtLeastOne = Annotated[T, FINITE_AT_LEAST_ONE]
Share = Annotated[T, Bound("a number in [0, 1]", lambda x: 0 <= x <= 1)]
Decay = Annotated[T, DECAY]
PositiveDecay = Annotated[T, POSITIVE_DECAY]
PositiveShare = Annotated[T, POSITIVE_SHARE]


def bounds(cls: type) -> dict[str, Bound]:
    """Returns the bounds of fields by name; of several numbers each has the same.

    >>> class Clip:
    ...     eps: Positive[float | None] = None
    ...     sizes: tuple[Count, ...] = ()
    ...     passes: int = 4
    >>> {name: bound.expected for name, bound in bounds(Clip).items()}
    {'eps': 'a number > 0, or None', 'sizes': 'at least 1 each'}
    """
    hints = typing.get_type_hints(cls, include_extras=True)
    found = {name: _bound(hint) for name, hint in hints.items()}
    return {name: bound for name, bound in found.items() if bound is not None}


def optional(bound: Bound) -> Bound:
    """The bound of a number that may be absent says so.

    >>> optional(DECAY).expected
    'a number in [0, 1), or None'
    """
    return bound._replace(expected=f"{bound.expected}, or None")


def _bound(hint: Any) -> Bound | None:
    """Returns the bound that a type gives its numbers, if it gives one."""
    plain = hint.__origin__ if hasattr(hint, "__metadata__") else hint
    parts = typing.get_args(plain)
    union = typing.get_origin(plain) in (typing.Union, UnionType)
    several = typing.get_origin(plain) is tuple and parts[1:] == (...,)
    said = [x for x in getattr(hint, "__metadata__", ()) if isinstance(x, Bound)]
    said += filter(None, map(_bound, parts if union or several else ()))
    if not said:
        return None
    if several:
        return said[0]._replace(expected=f"{said[0].expected} each")
    return optional(said[0]) if union and NoneType in parts else said[0]

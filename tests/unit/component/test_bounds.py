"""What a number may be is said by the type of its field, and only by that."""

import math
import re

import jax
import pytest

from ppo_jax.component import checked, component, replace_at
from ppo_jax.component.bounds import (
    AtLeastOne,
    Count,
    Finite,
    FiniteAtLeastOne,
    FiniteNonNegative,
    FinitePositive,
    Natural,
    NonNegative,
    Number,
    Positive,
    PositiveShare,
    Several,
    Share,
    Whole,
    bounds,
)

INF, NAN, TINY = math.inf, math.nan, 5e-324
ABOVE_ONE = math.nextafter(1.0, 2.0)
TYPES = {
    "at least 0": (Natural, [0, 3], [-1]),
    "at least 1": (Count, [1, 3], [0, -1]),
    "at least 2": (Several, [2, 3], [1, -2]),
    "a number": (Number[float], [-INF, 0, INF], [NAN]),
    "a finite number": (Finite[float], [-1e300, 0, 1e300], [INF, -INF, NAN]),
    "a whole number": (Whole[float], [-2, 0.0, 1e300], [0.5, TINY, INF, NAN]),
    "a number > 0": (Positive[float], [TINY, INF], [0, -TINY, -INF, NAN]),
    "a number ≥ 0": (NonNegative[float], [0, -0.0, INF], [-TINY, -INF, NAN]),
    "a finite number ≥ 0": (FiniteNonNegative[float], [0, 1e300], [-TINY, INF, NAN]),
    "a finite number > 0": (FinitePositive[float], [TINY, 1e300], [0, -1, INF, NAN]),
    "a finite number ≥ 1": (FiniteAtLeastOne[float], [1, 1e300], [0.999, INF, NAN]),
    "a number ≥ 1": (AtLeastOne[float], [1, INF], [0.999, -1, NAN]),
    "a number in [0, 1]": (Share[float], [0, 0.5, 1], [-TINY, ABOVE_ONE, INF, NAN]),
    "a number in (0, 1]": (PositiveShare[float], [TINY, 1], [0, ABOVE_ONE, INF, NAN]),
}
"""What is said of a type, what it allows and what it refuses."""


@pytest.mark.parametrize("expected", TYPES)
def test_where_a_range_ends(expected):
    hint, allowed, refused = TYPES[expected]
    held = component(type("Held", (), {"__annotations__": {"number": hint}}))
    for value in allowed:
        assert held(value).number == value
    said = f"^{re.escape(f'Held.number: expected {expected}, got')}"
    for value in refused:
        with pytest.raises(ValueError, match=said):
            held(value)


@component
class Bounded:
    """Numbers whose types say what they may be."""

    count: Count = 1
    share: Share[float] = 0.5
    limit: Positive[float | None] = None
    steps: Count | None = None
    sizes: tuple[Count, ...] = (2, 3)
    shares: tuple[Share[float], ...] | None = None
    pair: tuple[Count, int] = (1, -1)
    free: float = -1.0


@component
class Narrower(Bounded):
    """With another default, and the bound of before."""

    count: int = 2


@component
class Wider(Bounded):
    """With a bound of its own in the place of another."""

    share: NonNegative[float] = 2.0


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"count": 0}, "Bounded.count: expected at least 1, got 0"),
        ({"share": 1.5}, "Bounded.share: expected a number in [0, 1], got 1.5"),
        ({"limit": 0.0}, "Bounded.limit: expected a number > 0, or None, got 0.0"),
        ({"limit": NAN}, "Bounded.limit: expected a number > 0, or None, got nan"),
        ({"steps": 0}, "Bounded.steps: expected at least 1, or None, got 0"),
        ({"sizes": (1, 0)}, "Bounded.sizes: expected at least 1 each, got (1, 0)"),
        (
            {"shares": (0.5, 2.0)},
            "Bounded.shares: expected a number in [0, 1] each, or None, got (0.5, 2.0)",
        ),
    ],
)
def test_the_type_of_a_number_says_what_it_may_be(given, message):
    """At construction, and once it was replaced; a wrong type is told as ever."""
    with pytest.raises(ValueError, match=f"^{re.escape(message)}$"):
        Bounded(**given)
    with pytest.raises(ValueError, match=re.escape(message.partition(".")[2])):
        Narrower(**given)
    with pytest.raises(TypeError, match=r"Bounded\.limit: expected float \| None, got"):
        Bounded(limit="1")
    with pytest.raises(ValueError, match=r"^Bounded\.share: .*, got 2\.0$"):
        checked(replace_at(Bounded(), "share", 2.0))
    assert Bounded(share=1.0, limit=0.1).limit == 0.1
    assert jax.jit(lambda x: Bounded(share=x).share)(-1.0) == -1.0


def test_a_subclass_may_widen_a_bound():
    """Of the others it has those of before."""
    assert Wider().share == 2.0
    with pytest.raises(ValueError, match=r"^Wider\.share: expected a number ≥ 0, got"):
        Wider(share=-0.5)
    with pytest.raises(ValueError, match=r"^Wider\.count: expected at least 1, got 0$"):
        Wider(count=0)


NAMES = {"count", "share", "limit", "steps", "sizes", "shares"}


def test_only_fields_that_say_so_are_bounded():
    assert bounds(Bounded).keys() == NAMES
    assert bounds(Narrower).keys() == NAMES - {"count"}

"""Charts as plain data."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from ppo_jax.reports.scales import written

TONES = ("one", "two", "three", "four", "five", "six")
"""Colours of curves; the style of the page says which."""


class Curve(NamedTuple):
    """Values that are joined."""

    name: str
    x: np.ndarray
    y: np.ndarray
    tone: str = "one"
    dots: bool = False
    """Whether each of them is to be seen."""


class Band(NamedTuple):
    """What lies between two curves."""

    name: str
    x: np.ndarray
    low: np.ndarray
    high: np.ndarray
    tone: str = "one"


class Threads(NamedTuple):
    """Many curves that others stand out from."""

    name: str
    lines: Sequence[tuple[Any, Any]]
    """Their x and y."""


class Points(NamedTuple):
    """Values that nothing joins."""

    name: str
    x: np.ndarray
    y: np.ndarray
    tone: str = "one"


Mark = Curve | Band | Threads | Points


class Size(NamedTuple):
    """Of a chart, in units that are pixels where it is shown at its own width."""

    width: float
    height: float
    ticks: int
    detail: float
    """Share of a page's points that a curve has."""


LARGE, SMALL = Size(400, 230, 5, 1.0), Size(280, 130, 3, 0.5)


class Chart(NamedTuple):
    """Curves over an axis."""

    title: str
    marks: Sequence[Mark]
    x: str = "steps"
    unit: str = ""
    text: str = ""
    """What it shows."""
    healthy: tuple[float, float] | None = None
    """The values between which all is well."""
    log: bool | None = None
    """Whether its values span orders of magnitude; None: as they do."""
    across: Sequence[float] = ()
    """What the axis has to show, such as the time at which a run began."""
    up: Sequence[float] = ()
    """What the axis of values has to show."""


def told(curve: Curve | Points) -> str:
    """A curve in words.

    >>> told(Curve("loss", np.array([1.0, 2.0]), np.array([3.0, 2.5])))
    'loss: from 3 to 2.5, least 2.5, greatest 3.'
    """
    known = np.asarray(curve.y, np.float64)
    known = known[np.isfinite(known)]
    if not known.size:
        return f"{curve.name or 'It'}: never finite."
    first, last = written(float(known[0])), written(float(known[-1]))
    least, greatest = written(float(known.min())), written(float(known.max()))
    name = f"{curve.name}: f" if curve.name else "F"
    return f"{name}rom {first} to {last}, least {least}, greatest {greatest}."


def values(mark: Mark) -> tuple[list[Any], list[Any]]:
    """All x, and all y, of a mark."""
    if isinstance(mark, Curve | Points):
        return [mark.x], [mark.y]
    if isinstance(mark, Band):
        return [mark.x], [mark.low, mark.high]
    return [x for x, _ in mark.lines], [y for _, y in mark.lines]

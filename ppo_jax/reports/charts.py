"""Charts as plain data."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from ppo_jax.reports.scales import written

TONES = ("one", "two", "three", "four", "five", "six")
"""Names of the colours of curves, which the page's style sheet defines."""


class Curve(NamedTuple):
    """Points that a line joins."""

    name: str
    x: np.ndarray
    y: np.ndarray
    tone: str = "one"
    dots: bool = False
    """Whether each point is drawn as a dot, unless there are too many."""


class Band(NamedTuple):
    """The area between two curves."""

    name: str
    x: np.ndarray
    low: np.ndarray
    high: np.ndarray
    tone: str = "one"


class Threads(NamedTuple):
    """Many faint curves, from which others stand out."""

    name: str
    lines: Sequence[tuple[Any, Any]]
    """The x and y of each curve."""


class Points(NamedTuple):
    """Points that no line joins."""

    name: str
    x: np.ndarray
    y: np.ndarray
    tone: str = "one"


Mark = Curve | Band | Threads | Points


class Size(NamedTuple):
    """Size of a chart; its units are pixels where it is shown at its own width."""

    width: float
    height: float
    ticks: int
    detail: float
    """Factor on the page's number of points per curve."""


LARGE, SMALL = Size(400, 230, 5, 1.0), Size(280, 130, 3, 0.5)


class Chart(NamedTuple):
    """Curves over an axis."""

    title: str
    marks: Sequence[Mark]
    x: str = "steps"
    unit: str = ""
    text: str = ""
    """A description of the chart."""
    healthy: tuple[float, float] | None = None
    """The lowest and the highest healthy value; None: not known."""
    log: bool | None = None
    """Whether values are on a log axis; None: if they span orders of magnitude."""
    across: Sequence[float] = ()
    """Values that the horizontal axis has to show, such as the start of a run."""
    up: Sequence[float] = ()
    """Values that the vertical axis has to show."""


def told(curve: Curve | Points) -> str:
    """Describes a curve in words.

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
    """Returns all arrays of x, and all arrays of y, of a mark."""
    if isinstance(mark, Curve | Points):
        return [mark.x], [mark.y]
    if isinstance(mark, Band):
        return [mark.x], [mark.low, mark.high]
    return [x for x, _ in mark.lines], [y for _, y in mark.lines]

"""Scales of axes: places of values, and texts of ticks."""

import math
from collections.abc import Iterable
from typing import NamedTuple

import numpy as np

from ppo_jax.host.process.console import duration, figure

MARGIN = 0.04
"""Share of the span that is added at each end."""
DECADES = 30
"""The most decades of a logarithmic axis, from the greatest value down."""
UNKNOWN = "–"
"""Text for a value that is not finite."""
RAISED = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")


class Scale(NamedTuple):
    """An axis, from `low` to `high`."""

    low: float
    high: float
    log: bool = False

    def place(self, values: np.ndarray) -> np.ndarray:
        """Returns values as shares of the axis; NaN for those without a place.

        >>> Scale(1.0, 100.0, log=True).place(np.array([1.0, 10.0, -1.0])).tolist()
        [0.0, 0.5, nan]
        """
        values = np.asarray(values, np.float64)
        if self.log:
            low, high = math.log10(self.low), math.log10(self.high)
            known = np.where(values > 0, values, np.nan)
            return (np.log10(known) - low) / (high - low)
        known = np.where(np.isfinite(values), values, np.nan)
        return (known - self.low) / (self.high - self.low)

    def ticks(self, count: int = 5) -> list[tuple[float, str]]:
        """Returns round values of the axis, and their texts.

        >>> Scale(0.0, 1.0).ticks(4)
        [(0.0, '0'), (0.5, '0.5'), (1.0, '1')]
        """
        found = self._powers(count) if self.log else []
        for more in (count, 2 * count):
            found = found if len(found) > 1 else self._steps(more)
        labels: list[str] = []
        for digits in range(4, 16):
            labels = [written(value, digits) for value in found]
            if len({*labels}) == len(labels):
                break
        return [*zip(found, labels, strict=True)]

    def _steps(self, count: int) -> list[float]:
        step = nice((self.high - self.low) / count)
        first, last = math.ceil(self.low / step), math.floor(self.high / step)
        exact = max(0, 2 - math.floor(math.log10(step)))
        return [round(i * step, exact) for i in range(first, last + 1)]

    def _powers(self, count: int) -> list[float]:
        first = math.ceil(math.log10(self.low) - 1e-9)
        last = math.floor(math.log10(self.high) + 1e-9)
        every = max(1, math.ceil((last - first + 1) / count))
        return [10.0**i for i in range(first, last + 1, every)]


def scale_of(values: Iterable[np.ndarray], log: bool = False) -> Scale:
    """Returns the axis on which all finite values have a place.

    >>> scale_of([np.array([0.0, 50.0, np.nan]), np.array([100.0])])
    Scale(low=-4.0, high=104.0, log=False)
    """
    parts = [np.asarray(each, np.float64).ravel() for each in values]
    known = np.concatenate(parts) if parts else np.zeros(0)
    known = known[np.isfinite(known) & ((known > 0) | (not log))]
    if not known.size:
        return Scale(0.0, 1.0)
    low, high = float(known.min()), float(known.max())
    if log:
        low = max(low, high / 10.0**DECADES)
        factor = (high / low) ** MARGIN if high > low else 2.0
        return Scale(low / factor, high * factor, log=True)
    span = high - low
    if not math.isfinite(span) or span <= 1e-9 * max(abs(low), abs(high)):
        span = max(abs(low), abs(high)) or 1.0
        span = min(span, 1e300)
    return Scale(low - MARGIN * span, high + MARGIN * span)


def spans_orders(values: np.ndarray) -> bool:
    """Returns whether values are better told apart by their order of magnitude.

    >>> spans_orders(np.array([1.0, 1e4])), spans_orders(np.array([-1.0, 1e4]))
    (True, False)
    """
    known = values[np.isfinite(values)]
    return bool(known.size and known.min() > 0 and known.max() > 100 * known.min())


def nice(step: float) -> float:
    """Rounds a step up to one that is read easily: 1, 2 or 5, times a power of ten.

    >>> nice(0.03), nice(1.0), nice(612.0)
    (0.05, 1.0, 1000.0)
    """
    power = 10.0 ** math.floor(math.log10(step))
    return next(m * power for m in (1, 2, 5, 10) if m * power >= step * (1 - 1e-9))


def written(value: float, digits: int = 4) -> str:
    """Formats a number in few characters.

    >>> [written(x) for x in (0.25, 1500.0, 20000.0, 2.5e6, 1e-5, -1e12)]
    ['0.25', '1500', '20k', '2.5M', '10⁻⁵', '−10¹²']
    """
    size = float(f"{abs(value):.{digits}g}")
    if not math.isfinite(value):
        return UNKNOWN
    if size and not 1e-3 <= size < 1e9:
        mantissa, _, power = f"{abs(value):.{digits - 2}e}".partition("e")
        front = "" if float(mantissa) == 1 else f"{float(mantissa):.{digits}g}·"
        text = f"{front}10{str(int(power)).translate(RAISED)}"
    elif size >= 1e6:
        text = f"{size / 1e6:.{digits}g}M"
    elif size >= 1e4:
        text = f"{size / 1e3:.{digits}g}k"
    else:
        text = f"{size:.{digits}g}"
    return f"−{text}" if value < 0 else text


def exactly(value: float) -> str:
    """Formats a number as the console does.

    >>> exactly(1234567.0), exactly(math.nan)
    ('1,234,567', '–')
    """
    return figure(value) if math.isfinite(value) else UNKNOWN


def elapsed(seconds: float) -> str:
    """Formats a time as the console does."""
    return duration(seconds) if math.isfinite(seconds) else UNKNOWN

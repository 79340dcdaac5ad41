"""Curves as SVG, of which a page is made without anything from outside."""

import math
from collections.abc import Mapping, Sequence
from html import escape
from typing import NamedTuple

Points = Sequence[tuple[float, float]]
WIDTH, HEIGHT = 640, 220
LEFT, RIGHT, TOP, BOTTOM = 62, 14, 10, 26
"""Margins of a chart, for what is written at its axes."""
SPARK_WIDTH, SPARK_HEIGHT = 120, 28
UNITS = ((1e9, "G"), (1e6, "M"), (1e3, "k"))


class Span(NamedTuple):
    """What an axis shows, and where."""

    low: float
    high: float
    begin: float
    end: float

    def at(self, value: float) -> float:
        """Where a value is, in units of the picture."""
        share = (value - self.low) / (self.high - self.low)
        return self.begin + share * (self.end - self.begin)


def chart(
    curves: Mapping[str, Points], until: float | None, least: float = math.inf
) -> str:
    """Curves over environment steps, with axes.

    Args:
        curves: Points by name; those without any are left out.
        until: Where the axis of steps ends; None: at the last point.
        least: A value that is to be seen if all are greater.
    """
    curves = {name: points for name, points in curves.items() if points}
    if not curves:
        return '<p class="none">nothing yet</p>'
    xs, ys = zip(
        *(point for points in curves.values() for point in points), strict=True
    )
    across = Span(*_apart(0.0, max(*xs, until or 0.0)), LEFT, WIDTH - RIGHT)
    up = Span(*_apart(min(*ys, least), max(ys), by=0.05), HEIGHT - BOTTOM, TOP)
    lines = [_level(up, y) for y in ticks(up.low, up.high)]
    lines += [_moment(across, x) for x in ticks(across.low, across.high)]
    for number, (name, points) in enumerate(curves.items()):
        lines.append(_line(points, across, up, f"curve c{number}", name))
    body = "".join(lines)
    names = escape(", ".join(curves))
    size = f'viewBox="0 0 {WIDTH} {HEIGHT}"'
    return f'<svg {size} role="img"><title>{names}</title>{body}</svg>'


def sparkline(points: Points) -> str:
    """A curve without axes; of fewer than two points there is none."""
    if len(points) < 2:
        return ""
    xs, ys = zip(*points, strict=True)
    across = Span(*_apart(min(xs), max(xs)), 1, SPARK_WIDTH - 1)
    up = Span(*_apart(min(ys), max(ys)), SPARK_HEIGHT - 2, 2)
    body = _line(points, across, up, "curve c0", "")
    size = f'viewBox="0 0 {SPARK_WIDTH} {SPARK_HEIGHT}"'
    return f'<svg class="spark" {size} aria-hidden="true">{body}</svg>'


def ticks(low: float, high: float, most: int = 5) -> list[float]:
    """Round numbers between two, a few of them.

    >>> ticks(0.0, 1.0), ticks(-3.0, 21.0)
    ([0.0, 0.2, 0.4, 0.6, 0.8, 1.0], [0.0, 5.0, 10.0, 15.0, 20.0])
    """
    rough = (high - low) / most
    power = 10.0 ** math.floor(math.log10(rough))
    step = next((m * power for m in (1, 2, 5) if m * power >= rough * 0.99), 10 * power)
    first, last = math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9)
    return [round(i * step, 12) for i in range(first, last + 1)]


def short(value: float) -> str:
    """A number in little room.

    >>> short(1_250_000), short(200.0), short(0.25), short(-40_000)
    ('1.25M', '200', '0.25', '-40k')
    """
    for size, unit in UNITS:
        if abs(value) >= size:
            return f"{value / size:.4g}{unit}"
    return f"{value:.4g}"


def _apart(low: float, high: float, by: float = 0.0) -> tuple[float, float]:
    """Two ends that are not the same, with some room around them."""
    if not high - low > 1e-9 * max(abs(low), abs(high)):
        room = abs(low) / 10 or 1.0
        return low - room * bool(by), high + room
    return low - by * (high - low), high + by * (high - low)


def _line(points: Points, across: Span, up: Span, style: str, name: str) -> str:
    where = " ".join(f"{across.at(x):.1f},{up.at(y):.1f}" for x, y in points)
    title = f"<title>{escape(name)}</title>" if name else ""
    if len(points) > 1:
        return f'<polyline class="{style}" points="{where}">{title}</polyline>'
    x, _, y = where.partition(",")
    return f'<circle class="{style}" cx="{x}" cy="{y}" r="2.5">{title}</circle>'


def _level(up: Span, value: float) -> str:
    y, text = f"{up.at(value):.1f}", short(value)
    return (
        f'<line class="grid" x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{y}" y2="{y}"/>'
        f'<text x="{LEFT - 8}" y="{y}" dy="0.35em" text-anchor="end">{text}</text>'
    )


def _moment(across: Span, value: float) -> str:
    x, y = f"{across.at(value):.1f}", HEIGHT - BOTTOM + 18
    return f'<text x="{x}" y="{y}" text-anchor="middle">{short(value)}</text>'

"""Charts as SVG, which scales with its place and takes its colours from the page."""

from typing import Any, NamedTuple
from xml.etree.ElementTree import Element

import numpy as np

from ppo_jax.reports.charts import (
    Band,
    Chart,
    Curve,
    Mark,
    Points,
    Size,
    Threads,
    told,
    values,
)
from ppo_jax.reports.elements import element
from ppo_jax.reports.scales import Scale, scale_of, spans_orders
from ppo_jax.reports.thinning import thinned

CHARACTER = 6.6
"""Width of a character, in the units of a chart."""
SPARK = 120, 28
"""Width and height of a curve in a line of text."""


class Frame(NamedTuple):
    """The scales of a chart's axes, and their place in the picture."""

    across: Scale
    up: Scale
    left: float
    top: float
    width: float
    height: float

    def points(self, x: Any, y: Any) -> tuple[np.ndarray, np.ndarray]:
        """Converts values to coordinates."""
        right = self.left + self.across.place(x) * self.width
        down = self.top + (1 - self.up.place(y)) * self.height
        return right, down


def draw(chart: Chart, size: Size, detail: int) -> Element:
    """Draws a chart as a figure: caption, picture and legend.

    Args:
        chart: The chart.
        size: Its size.
        detail: Points of a curve, at most.
    """
    named = [mark for mark in chart.marks if mark.name]
    legend = [
        element("li", mark.name, class_=f"{_kind(mark)} {_tone(mark)}")
        for mark in named
    ]
    return element(
        "figure",
        element(
            "figcaption",
            element("strong", chart.title),
            element("span", chart.unit, class_="unit") if chart.unit else None,
            element("span", chart.text, class_="text") if chart.text else None,
        ),
        _picture(chart, size, max(4, int(detail * size.detail))),
        element("ul", legend, class_="legend") if len(named) > 1 else None,
    )


def sparkline(curve: Curve) -> Element | None:
    """Draws a curve for a line of text, without axes; None: it has under two points."""
    if len(curve.x) < 2:
        return None
    width, height = SPARK
    frame = Frame(scale_of([curve.x]), scale_of([curve.y]), 0, 1, width, height - 2)
    path = _path(*frame.points(curve.x, curve.y))
    return element(
        "svg",
        element("path", d=path, class_=f"line {curve.tone}"),
        viewBox=f"0 0 {width} {height}",
        class_="spark",
        aria_hidden="true",
    )


def _picture(chart: Chart, size: Size, detail: int) -> Element:
    """Draws the SVG of a chart, with a text for those who do not see it."""
    curves = [mark for mark in chart.marks if isinstance(mark, Curve | Points)]
    frame = _frame(chart, size)
    return element(
        "svg",
        element("title", chart.title),
        element("desc", " ".join([chart.text, *map(told, curves)]).strip()),
        _healthy(chart, frame),
        _grid(frame, size),
        [_drawn(mark, frame, detail) for mark in chart.marks],
        None if _known(chart) else _empty(frame),
        element(
            "text",
            chart.x,
            x=_round(frame.left + frame.width),
            y=_round(size.height - 3),
            class_="end",
        ),
        viewBox=f"0 0 {size.width:g} {size.height:g}",
        role="img",
    )


def _known(chart: Chart) -> bool:
    each = (y for mark in chart.marks for y in values(mark)[1])
    return any(np.isfinite(np.asarray(y, np.float64)).any() for y in each)


def _frame(chart: Chart, size: Size) -> Frame:
    across = [x for mark in chart.marks for x in values(mark)[0]]
    across += [np.array(chart.across, np.float64)]
    ups = [y for mark in chart.marks for y in values(mark)[1]]
    ups = [np.asarray(y, np.float64) for y in (*ups, chart.up)]
    log = spans_orders(np.concatenate(ups)) if chart.log is None else chart.log
    up = scale_of(ups, log)
    widest = max((len(label) for _, label in up.ticks(size.ticks)), default=1)
    left, top, below = 10 + CHARACTER * widest, 8.0, 32.0
    width, height = size.width - left - 12, size.height - top - below
    return Frame(scale_of(across), up, left, top, width, height)


def _grid(frame: Frame, size: Size) -> list[Element]:
    """Draws the lines and labels of the axes."""
    found = []
    for value, label in frame.up.ticks(size.ticks):
        _, (y,) = frame.points([frame.across.low], [value])
        if frame.top - 1 <= y <= frame.top + frame.height + 1:
            path = f"M{_round(frame.left)},{_round(y)}h{_round(frame.width)}"
            found += [
                element("path", d=path, class_="grid-line"),
                element(
                    "text",
                    label,
                    x=_round(frame.left - 5),
                    y=_round(y + 4),
                    class_="end",
                ),
            ]
    bottom = frame.top + frame.height
    for value, label in frame.across.ticks(size.ticks):
        (x,), _ = frame.points([value], [frame.up.low])
        place = {"x": _round(x), "y": _round(bottom + 14), "class_": "middle"}
        found.append(element("text", label, **place))
    return found


def _healthy(chart: Chart, frame: Frame) -> Element | None:
    """Draws the area of healthy values; None: there is none in the picture."""
    if chart.healthy is None:
        return None
    ends = np.clip(chart.healthy, frame.up.low, frame.up.high)
    _, (low, high) = frame.points([frame.across.low] * 2, ends)
    if not low > high:
        return None
    return element(
        "rect",
        x=_round(frame.left),
        y=_round(high),
        width=_round(frame.width),
        height=_round(low - high),
        class_="healthy",
    )


def _drawn(mark: Mark, frame: Frame, detail: int) -> list[Element]:
    if isinstance(mark, Threads):
        each = max(4, 16 * detail // max(1, len(mark.lines)))
        lines = [_thin(x, y, each) for x, y in mark.lines]
        path = "".join(_path(*frame.points(x, y)) for x, y in lines)
        return [element("path", d=path, class_="line faint")]
    if isinstance(mark, Band):
        return [_area(mark, frame, detail)]
    if isinstance(mark, Points):
        return [_dots(*frame.points(mark.x, mark.y), mark.tone)]
    x, y = frame.points(*_thin(mark.x, mark.y, detail))
    found = [element("path", d=_path(x, y), class_=f"line {mark.tone}")]
    known = np.isfinite(x) & np.isfinite(y)
    if not known.all() and known.any():
        bridge = _path(x[known], y[known])
        found.insert(0, element("path", d=bridge, class_=f"bridge {mark.tone}"))
    if mark.dots and len(x) <= detail / 2:
        found.append(_dots(x, y, mark.tone))
    return found


def _dots(x: np.ndarray, y: np.ndarray, tone: str) -> Element:
    path = "".join(_path(x[i : i + 1], y[i : i + 1]) for i in range(len(x)))
    return element("path", d=path, class_=f"dots {tone}")


def _area(band: Band, frame: Frame, detail: int) -> Element:
    """Draws the area between the curves of a band, without unknown points."""
    x, low = _thin(band.x, band.low, detail // 2)
    high_x, high = _thin(band.x, band.high, detail // 2)
    known, high_known = np.isfinite(low), np.isfinite(high)
    x = np.concatenate([x[known], high_x[high_known][::-1]])
    y = np.concatenate([low[known], high[high_known][::-1]])
    path = _path(*frame.points(x, y))
    return element("path", d=f"{path}Z" if path else "", class_=f"band {band.tone}")


def _thin(x: Any, y: Any, count: int) -> tuple[np.ndarray, np.ndarray]:
    return thinned(
        np.asarray(x, np.float64), np.asarray(y, np.float64), max(4, int(count))
    )


def _path(x: np.ndarray, y: np.ndarray) -> str:
    """Returns a path of straight lines between points, with gaps at unknown ones.

    >>> _path(np.array([0.0, 1, 2, 3]), np.array([0.0, 1, np.nan, 2]))
    'M0,0L1,1M3,2h0'
    """
    parts, joined = [], False
    known = np.isfinite(x) & np.isfinite(y)
    for i in np.flatnonzero(known):
        follows = i > 0 and known[i - 1]
        if not follows and parts and not joined:
            parts.append("h0")
        parts.append(f"{'L' if follows else 'M'}{_round(x[i])},{_round(y[i])}")
        joined = bool(follows)
    return "".join(parts) + ("" if joined or not parts else "h0")


def _empty(frame: Frame) -> Element:
    x, y = frame.left + frame.width / 2, frame.top + frame.height / 2
    return element("text", "nothing finite", x=_round(x), y=_round(y), class_="middle")


def _round(value: float) -> str:
    """Formats a coordinate to a tenth.

    >>> _round(3.04), _round(2.96), _round(-0.01)
    ('3', '3', '0')
    """
    return f"{round(float(value), 1) + 0.0:g}"


def _kind(mark: Mark) -> str:
    return "area" if isinstance(mark, Band) else "line"


def _tone(mark: Mark) -> str:
    return "faint" if isinstance(mark, Threads) else mark.tone

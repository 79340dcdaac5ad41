"""Bars over the width of a page: spells, shares, estimates with their intervals."""

import math
from collections.abc import Iterable, Sequence
from typing import NamedTuple
from xml.etree.ElementTree import Element

from ppo_jax.reports.elements import element
from ppo_jax.reports.scales import written

THIN = 0.002
"""Least width of a bar, as a share of its strip."""


class Bar(NamedTuple):
    """A part of a strip, from one share of it to another."""

    begin: float
    end: float
    kind: str = ""
    """Class of the bar, whose colour the page's style sheet defines."""


class Estimate(NamedTuple):
    """A number with its interval."""

    name: str
    value: float
    interval: tuple[float, float] | None
    tone: str = "one"

    def __str__(self) -> str:
        """Returns the number and its interval as text."""
        ends = f", {pair(self.interval)}" if self.interval else ""
        return written(self.value) + ends


def strip(title: str, description: str, bars: Iterable[Bar], tone: str = "") -> Element:
    """Draws a strip, which is as wide as there is room.

    >>> from ppo_jax.reports.elements import markup
    >>> markup(strip("x", "half", [Bar(0.0, 0.5)])).count("<rect")
    1
    """
    rects = [
        element(
            "rect",
            x=f"{1000 * bar.begin:.1f}",
            width=f"{1000 * max(bar.end - bar.begin, THIN):.1f}",
            height=10,
            class_=bar.kind or None,
        )
        for bar in bars
    ]
    return element(
        "svg",
        element("title", title),
        element("desc", description),
        rects,
        viewBox="0 0 1000 10",
        preserveAspectRatio="none",
        role="img",
        class_=f"strip {tone}".strip(),
    )


def axis(left: str, right: str) -> Element:
    """Returns the labels of both ends of strips."""
    return element("div", element("span", left), element("span", right), class_="axis")


def forest(
    estimates: Sequence[Estimate], low: float, high: float, middle: float | None = None
) -> Element:
    """Draws estimates below each other on one scale.

    Args:
        estimates: The estimates.
        low: The left end of the scale.
        high: The right end.
        middle: A value that a line marks, if any.
    """
    span = (high - low) or 1.0

    def at(value: float) -> float:
        return 0.02 + 0.96 * (min(max(value, low), high) - low) / span

    items = []
    for each in estimates:
        bars = [] if middle is None else [Bar(at(middle), at(middle), "middle-line")]
        if each.interval is not None:
            begin, end = each.interval
            bars.append(Bar(at(begin), at(end), "between"))
        if math.isfinite(each.value):
            bars.append(Bar(at(each.value) - 0.003, at(each.value) + 0.003, "point"))
        labels = [element("span", each.name), element("span", str(each))]
        head = element("div", labels, class_="head")
        picture = strip(each.name, str(each), bars, each.tone)
        items.append(element("li", head, picture))
    ends = axis(written(low), written(high))
    return element("div", element("ul", items, class_="strips"), ends)


def pair(ends: tuple[float, float] | None) -> str:
    """Formats an interval.

    >>> pair((0.5, 2.0)), pair(None)
    ('0.5 to 2', '')
    """
    return "" if ends is None else f"{written(ends[0])} to {written(ends[1])}"

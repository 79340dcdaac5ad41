"""Parts of a page as plain data, and their layout."""

from collections.abc import Sequence
from typing import NamedTuple
from xml.etree.ElementTree import Element

from ppo_jax.reports.charts import LARGE, SMALL, Chart
from ppo_jax.reports.drawing import draw
from ppo_jax.reports.elements import element


class Grid(NamedTuple):
    """Charts beside each other, as many as there is room for."""

    charts: Sequence[Chart]
    small: bool = False


class Fold(NamedTuple):
    """Parts that a reader can open and close."""

    title: str
    parts: "Sequence[Part]"
    open: bool = True


Part = Element | Grid | Fold | None


class Section(NamedTuple):
    """A heading, and the parts below it."""

    title: str
    parts: Sequence[Part]

    @property
    def anchor(self) -> str:
        """The name of its place in the page."""
        return self.title.lower().replace(" ", "-")


def laid_out(section: Section, detail: int) -> Element:
    """Returns a section as an element of the page.

    Args:
        section: The section.
        detail: Points of a curve, at most.
    """
    heading = element("h2", section.title)
    parts = [_part(part, detail) for part in section.parts]
    return element("section", heading, parts, id=section.anchor)


def _part(part: Part, detail: int) -> Element | None:
    if isinstance(part, Grid):
        size = SMALL if part.small else LARGE
        charts = [draw(chart, size, detail) for chart in part.charts]
        return element("div", charts, class_="grid small" if part.small else "grid")
    if isinstance(part, Fold):
        return element(
            "details",
            element("summary", part.title),
            [_part(each, detail) for each in part.parts],
            open="" if part.open else None,
        )
    return part

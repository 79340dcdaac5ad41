"""A whole page: one file, which refers to nothing outside of it and needs no script."""

from collections.abc import Sequence
from xml.etree.ElementTree import Element

from ppo_jax.reports import (
    about,
    diagnostics,
    families,
    learning,
    measured,
    speed,
    troubles,
)
from ppo_jax.reports.elements import STYLE, document, element
from ppo_jax.reports.records import Record
from ppo_jax.reports.sections import Section, laid_out

Lead = Sequence[Element | None]
LIMIT = 1_000_000
"""The most characters of a page, each of which is a byte."""
DETAILS = (240, 120, 60, 30, 12)
"""Points of a curve at most; the first of these that keeps a page in its limit."""


def of_run(run: Record) -> str:
    """Returns the page of a run."""
    parts = [
        learning.section(run),
        about.section(run),
        troubles.section(run),
        families.section(run),
        measured.section(run),
        diagnostics.section(run),
        speed.section(run),
    ]
    lead = [element("p", about.lead(run)), about.notes([run]), about.overview(run)]
    return page(run.name, lead, [part for part in parts if part is not None])


def page(
    title: str, lead: Lead, sections: Sequence[Section], maker: str = "report"
) -> str:
    """Returns a page as text, as detailed as fits into its limit.

    Args:
        title: Title of the page.
        lead: Elements above all sections.
        sections: Its sections.
        maker: The command that makes it.
    """
    text = ""
    for detail in DETAILS:
        text = _text(title, lead, sections, detail, maker)
        if len(text) <= LIMIT:
            break
    return text


def _text(
    title: str, lead: Lead, sections: Sequence[Section], detail: int, maker: str
) -> str:
    links = [
        element("a", section.title, href=f"#{section.anchor}") for section in sections
    ]
    return document(
        title,
        element("style", STYLE),
        element("header", element("h1", title), lead),
        element("nav", links, aria_label="Sections"),
        element("main", [laid_out(section, detail) for section in sections]),
        element("footer", f"Made by python -m ppo_jax.{maker}."),
    )

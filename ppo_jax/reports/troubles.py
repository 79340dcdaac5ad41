"""Alerts of a run on a time line, with their causes and remedies."""

from typing import NamedTuple
from xml.etree.ElementTree import Element

import numpy as np

from ppo_jax.host.metrics.alarms import READ
from ppo_jax.host.metrics.alerts import Alert, advised
from ppo_jax.reports.elements import code, element, prose
from ppo_jax.reports.records import Record
from ppo_jax.reports.sections import Section
from ppo_jax.reports.strips import THIN, Bar, axis, strip

PREFIX = "warn/"


class Trouble(NamedTuple):
    """An alert that was active."""

    name: str
    spells: list[tuple[float, float]]
    """Beginnings and ends, in steps."""
    share: float
    """Share of the run's phases in which it was active."""
    members: float
    """The most members for which it was active."""
    lasts: bool
    """Whether it is active at the end."""


def section(run: Record) -> Section:
    """Returns the times at which alerts were active, with causes and remedies."""
    found = troubles(run)
    watched = sum(name.startswith(PREFIX) for name in run.names)
    if not found:
        text = f"None of the {watched} alerts that were watched was ever active."
        return Section("Alerts", [element("p", text, class_="good")])
    end = max(1.0, float(run.rows[-1]["step"]))
    items = [_item(trouble, end, run.members) for trouble in found]
    text = f"{len(found)} of {watched} alerts were active."
    return Section(
        "Alerts",
        [
            element("p", text),
            axis("0", f"{end:,.0f} steps"),
            element("ul", items, class_="strips"),
        ],
    )


def troubles(run: Record) -> list[Trouble]:
    """Returns all alerts that were ever active, the longest first."""
    found = []
    for name in sorted(name for name in run.names if name.startswith(PREFIX)):
        steps, active = run.series(name)
        begun = np.concatenate([[0.0], steps[:-1]])
        on = active > 0
        if on.any():
            share, most = float(on.mean()), float(np.nanmax(active))
            spells = _merged(begun[on], steps[on], float(run.rows[-1]["step"]))
            found.append(Trouble(name, spells, share, most, bool(on[-1])))
    return sorted(found, key=lambda trouble: -trouble.share)


def _merged(
    begun: np.ndarray, ended: np.ndarray, end: float
) -> list[tuple[float, float]]:
    """Merges phases into spells; a gap that is too small to see does not count."""
    spells: list[tuple[float, float]] = []
    for first, last in zip(begun.tolist(), ended.tolist(), strict=True):
        if spells and first - spells[-1][1] <= end * THIN:
            spells[-1] = (spells[-1][0], last)
        else:
            spells.append((first, last))
    return spells


def _item(trouble: Trouble, end: float, members: int) -> Element:
    first, last = trouble.spells[0][0], trouble.spells[-1][1]
    text = f"{trouble.share:.0%} of the run, within steps {first:,.0f} to {last:,.0f}"
    text += ", at the end too" if trouble.lasts else ""
    if members > 1:
        text += f"; up to {trouble.members:.0f} of {members} members"
    bars = [Bar(begun / end, ended / end, "alarm") for begun, ended in trouble.spells]
    return element(
        "li",
        element("div", code(trouble.name), element("span", text), class_="head"),
        strip(trouble.name, text, bars),
        [_advice(row) for row in advised(trouble.name)],
        element("p", code(f"{READ} {trouble.name}"), class_="more"),
    )


def _advice(row: Alert) -> Element:
    pairs = (
        ("active when", f"`{row.metric}` {row.when}"),
        ("healthy", row.healthy),
        ("cause", row.causes),
        ("remedy", row.remedy),
    )
    terms = [(element("dt", name), element("dd", prose(text))) for name, text in pairs]
    return element("dl", terms)


def summary(run: Record) -> tuple[int, int]:
    """Returns how many alerts were active, and how many of them are at the end.

    >>> rows = [{"step": 1, "warn/x": 1.0, "warn/y": 1.0}, {"step": 2, "warn/x": 0.0}]
    >>> summary(Record(None, [*rows, rows[0] | {"step": 3}], [], {}, {}, []))
    (2, 2)
    """
    found = troubles(run)
    return len(found), sum(trouble.lasts for trouble in found)

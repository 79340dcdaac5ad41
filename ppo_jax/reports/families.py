"""A population: its family tree, and the schedules that were found."""

from collections.abc import Sequence
from typing import Any
from xml.etree.ElementTree import Element

import numpy as np

from ppo_jax.host.metrics.figures import BEST, Line, Rows
from ppo_jax.host.run_dir import lineage
from ppo_jax.reports.charts import Chart, Curve, Threads
from ppo_jax.reports.elements import code, element, table
from ppo_jax.reports.records import UPDATES, Record, is_number
from ppo_jax.reports.scales import written
from ppo_jax.reports.sections import Grid, Section

Lineage = list[dict[str, Any]]
"""Lines of `lineage.jsonl`, from its beginning."""


def section(run: Record) -> Section | None:
    """Returns the family tree and all searched numbers; None: it is a single run."""
    if not run.generations:
        return None
    lines, end = run.generations, float(run.rows[-1][UPDATES])
    best = min(fittest(run.rows), len(lines[0]["parent"]) - 1)
    found = [schedule(lines, path, best, end) for path in lines[0]["numbers"]]
    charts = Grid([family_tree(lines, best, end), *found])
    lead = element("p", _said(lines, best))
    return Section("Population", [lead, charts, _numbers(lines, best)])


def fittest(rows: Rows) -> int:
    """Returns the fittest member at the last evaluation; 0 before there is any.

    >>> fittest([{"pbt/fittest": 1.0}, {"pbt/fittest": 2.0}, {}])
    2
    """
    members = (row[BEST] for row in reversed(rows) if is_number(row.get(BEST)))
    return int(next(members, 0))


def family_tree(lines: Lineage, best: int, end: float) -> Chart:
    """Draws which member continues which, over updates, and the ancestry of the best.

    Args:
        lines: The lineage.
        best: The fittest member.
        end: Updates of the whole run.
    """
    size = len(lines[0]["parent"])
    lives = [Line([0, end], [member, member]) for member in range(size)]
    copies = [
        Line([line["update"]] * 2, [parent, member])
        for line in lines
        for member, parent in enumerate(line["parent"])
        if parent != member
    ]
    past = _stairs(lineage.ancestry(lines, best), end)
    marks = [Threads("lives and copies", lives + copies), _strong(past)]
    text = "Who continued whom."
    return Chart("member", marks, "updates", text=text, log=False)


def schedule(lines: Lineage, path: str, best: int, end: float) -> Chart:
    """Draws a searched number of every member, and along the ancestry of the best."""
    updates = [line["update"] for line in lines]
    each = np.array([line["numbers"][path] for line in lines]).T.tolist()
    past = lineage.schedule(lines, best)
    strong = _stairs([(update, numbers[path]) for update, numbers in past], end)
    faint = [_stairs([*zip(updates, own, strict=True)], end) for own in each]
    low, high = min(map(min, each)), max(map(max, each))
    text = "Along the past of the fittest member, and of each."
    marks = [Threads("members", faint), _strong(strong)]
    log = low > 0 and high > 10 * low
    return Chart(path, marks, "updates", text=text, log=log)


def _strong(line: Line) -> Curve:
    return Curve("the fittest", np.array(line.x, float), np.array(line.y, float))


def _stairs(values: Sequence[tuple[float, float]], end: float) -> Line:
    """Returns a line that holds each value until the next one.

    >>> _stairs([(0, 1.0), (4, 2.0)], 6)
    Line(x=[0, 4, 4, 6], y=[1.0, 1.0, 2.0, 2.0])
    """
    updates = [update for update, _ in values]
    x = [at for pair in zip(updates, [*updates[1:], end], strict=True) for at in pair]
    return Line(x, [value for _, value in values for _ in range(2)])


def _said(lines: Lineage, best: int) -> str:
    moved = [i != parent for line in lines for i, parent in enumerate(line["parent"])]
    return (
        f"{len(lines[0]['parent'])} members, {len(lines) - 1} generations, "
        f"{sum(moved)} copies. The strong line is the past of member {best}, the "
        "fittest at the last evaluation."
    )


def _numbers(lines: Lineage, best: int) -> Element:
    """Returns a table of searched numbers: the fittest's, and all at start and end."""
    first, final = lines[0]["numbers"], lines[-1]["numbers"]
    rows = [
        (code(path), written(final[path][best]), _ends(first[path]), _ends(final[path]))
        for path in first
    ]
    return table(("number", f"member {best}", "all, at first", "all, at last"), rows)


def _ends(values: Sequence[float]) -> str:
    return f"{written(min(values))} to {written(max(values))}"

"""Figures of a run as plain data, and how they are drawn."""

import contextlib
from collections.abc import Iterator, Sequence
from itertools import chain, cycle
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from ppo_jax.errors import UserError
from ppo_jax.host import lineage

Rows = Sequence[dict[str, Any]]
"""Lines of `metrics.jsonl` or `lineage.jsonl`."""
SCORE, BEST = "eval/mean_reward", "pbt/fittest"
STYLES = (("-", "o"), ("--", "s"), ("-.", "^"), (":", "D"), ((0, (1, 4)), "x"))
"""Lines and markers of curves that may coincide: each has gaps for those below it."""


class Line(NamedTuple):
    """Points that are joined."""

    x: list[float]
    y: list[float]


class Panel(NamedTuple):
    """One plot over updates."""

    title: str
    strong: list[Line]
    """What it is about."""
    faint: list[Line]
    """What that stands out from."""
    log: bool = False
    """Whether its values span orders of magnitude."""


def panels(metrics: Rows, generations: Rows) -> list[Panel]:
    """All that there is to see of a run.

    Args:
        metrics: What it logged.
        generations: Its lineage, empty for a single run.
    """
    if not generations:
        return [learning_curve(metrics)]
    lines, end = list(generations), metrics[-1]["time/iterations"]
    best = fittest(metrics)
    numbers = [schedules(lines, path, best, end) for path in lines[0]["numbers"]]
    return [learning_curve(metrics), family_tree(lines, best, end), *numbers]


def learning_curve(metrics: Rows) -> Panel:
    """Evaluations: of a single run, or the median and every member."""
    rows = [row for row in metrics if row.get(SCORE) is not None]
    each = sorted({name for row in rows for name in row if name.startswith("each/")})
    members = [name for name in each if name.startswith(f"each/{SCORE}/")]
    return Panel(SCORE, [_curve(rows, SCORE)], [_curve(rows, name) for name in members])


def family_tree(lines: list[dict[str, Any]], best: int, end: float) -> Panel:
    """Who continues whom: members over updates, and the ancestry of the best.

    Args:
        lines: A lineage from its beginning.
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
    past = lineage.ancestry(lines, best)
    return Panel("member", [_stairs(past, end)], lives + copies)


def schedules(lines: list[dict[str, Any]], path: str, best: int, end: float) -> Panel:
    """A searched number of every member, and along the ancestry of the best."""
    updates = [line["update"] for line in lines]
    each = np.array([line["numbers"][path] for line in lines]).T.tolist()
    past = lineage.schedule(lines, best)
    strong = _stairs([(update, numbers[path]) for update, numbers in past], end)
    faint = [_stairs([*zip(updates, own, strict=True)], end) for own in each]
    low, high = min(map(min, each)), max(map(max, each))
    return Panel(path, [strong], faint, log=low > 0 and high > 10 * low)


def fittest(metrics: Rows) -> int:
    """The fittest member at the last evaluation; the first one before there is any.

    >>> fittest([{"pbt/fittest": 1.0}, {"pbt/fittest": 2.0}, {}])
    2
    """
    return int(next((row[BEST] for row in reversed(metrics) if BEST in row), 0))


def draw(drawn: Sequence[Panel], path: Path) -> None:
    """Draws panels one below the other; needs the extra `report`.

    Raises:
        UserError: Without matplotlib.
        OSError: If the file cannot be written.
    """
    with _axes(path, len(drawn), 1, figsize=(8, 2.2 * len(drawn))) as rows:
        for panel, axes in zip(drawn, rows[:, 0], strict=True):
            for line in panel.faint:
                axes.plot(*line, color="0.75", linewidth=0.8)
            for line in panel.strong:
                axes.plot(*line, color="tab:blue", linewidth=2)
            axes.set(ylabel=panel.title, yscale="log" if panel.log else "linear")
        rows[-1, 0].set_xlabel("updates")


def draw_grid(
    grid: Sequence[Sequence[tuple[str, dict[str, Line]]]], x: str, path: Path
) -> None:
    """Draws titled panels with named lines, a list of them per row; needs `report`.

    Panels of a row have the same scale; of lines that coincide, all are to be seen.

    Raises:
        UserError: Without matplotlib.
        OSError: If the file cannot be written.
    """
    height, width = len(grid), len(grid[0])
    size = (5 * width, 3.2 * height)
    with _axes(path, height, width, sharey="row", figsize=size) as rows:
        for (title, lines), axes in zip(chain(*grid), rows.flat, strict=True):
            for (name, line), (dashes, marker) in zip(lines.items(), cycle(STYLES)):
                axes.plot(
                    *line,
                    linestyle=dashes,
                    marker=marker,
                    markerfacecolor="none",
                    label=name,
                )
            axes.set_title(title, fontsize="small")
        for axes in rows[-1]:
            axes.set_xlabel(x)
        rows[0, 0].legend()


@contextlib.contextmanager
def _axes(path: Path, height: int, width: int, **layout: Any) -> Iterator[Any]:
    """Axes of a picture, `[height, width]`, which is then written."""
    try:
        import matplotlib
    except ImportError as error:
        hint = "matplotlib is missing: pip install 'ppo_jax[report]'"
        raise UserError(hint) from error
    matplotlib.use("agg")
    from matplotlib import pyplot

    figure, rows = pyplot.subplots(
        height, width, sharex=True, squeeze=False, layout="constrained", **layout
    )
    yield rows
    figure.savefig(path)
    pyplot.close(figure)


def _curve(rows: Rows, name: str) -> Line:
    known = [row for row in rows if row.get(name) is not None]
    return Line([row["time/iterations"] for row in known], [row[name] for row in known])


def _stairs(values: Sequence[tuple[float, float]], end: float) -> Line:
    """A line that holds each value until the next one.

    >>> _stairs([(0, 1.0), (4, 2.0)], 6)
    Line(x=[0, 4, 4, 6], y=[1.0, 1.0, 2.0, 2.0])
    """
    updates = [update for update, _ in values]
    x = [at for pair in zip(updates, [*updates[1:], end], strict=True) for at in pair]
    return Line(x, [value for _, value in values for _ in range(2)])

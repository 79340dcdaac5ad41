"""Curves as plain data, and their drawing with matplotlib."""

from collections.abc import Sequence
from itertools import chain, cycle
from pathlib import Path
from typing import Any, NamedTuple

from ppo_jax.errors import UserError

Rows = Sequence[dict[str, Any]]
"""Lines of `metrics.jsonl` or `lineage.jsonl`."""
SCORE, BEST = "eval/mean_reward", "pbt/fittest"
STYLES = (("-", "o"), ("--", "s"), ("-.", "^"), (":", "D"), ((0, (1, 4)), "x"))
"""Lines and markers of curves that may coincide: each has gaps for those below it."""


class Line(NamedTuple):
    """Points that a line joins."""

    x: list[float]
    y: list[float]


def draw_grid(
    grid: Sequence[Sequence[tuple[str, dict[str, Line]]]], x: str, path: Path
) -> None:
    """Draws titled panels with named lines, given by rows; needs the extra `report`.

    Panels of a row have the same scale. Lines that coincide all remain visible.

    Raises:
        UserError: If matplotlib is missing.
        OSError: If the file cannot be written.
    """
    height, width = len(grid), len(grid[0])
    pyplot = _pyplot()
    figure, rows = pyplot.subplots(
        *(height, width),
        sharex=True,
        sharey="row",
        squeeze=False,
        layout="constrained",
        figsize=(5 * width, 3.2 * height),
    )
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
    figure.savefig(path)
    pyplot.close(figure)


def _pyplot() -> Any:
    """Returns the part of matplotlib that draws, set up to open no window."""
    try:
        import matplotlib
    except ImportError as error:
        hint = "matplotlib is missing: pip install 'ppo_jax[report]'"
        raise UserError(hint) from error
    matplotlib.use("agg")
    from matplotlib import pyplot

    return pyplot

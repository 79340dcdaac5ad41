"""A list of runs for a terminal, and as JSON."""

import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from ppo_jax.host.process import tables
from ppo_jax.host.process.console import duration, figure
from ppo_jax.host.run_dir.batched import OF_BATCHES
from ppo_jax.monitoring import finding
from ppo_jax.monitoring.status import Status, ended_badly, now

HEADER = ("run", "state", "evaluation", "best", "steps", "last written", "size")
UNKNOWN = "–"


class Listed(NamedTuple):
    """A run, and its size on disk."""

    status: Status
    size: int
    """The size in bytes."""


def listed(root: Path) -> list[Listed]:
    """Returns all runs below a folder, by path; there may be none.

    Raises:
        UserError: If there is no such folder.
    """
    found = finding.find(root)
    return [Listed(now(run_dir), finding.size(run_dir)) for run_dir in found]


def text(runs: Sequence[Listed]) -> str:
    """Returns the runs as a table, then advice on those that did not finish."""
    table = tables.aligned(HEADER, [_cells(run) for run in runs])
    badly = [run.status for run in runs if ended_badly(run.status)]
    return table + "".join(f"\n{_advice(each)}\n" for each in badly)


def as_json(runs: Sequence[Listed]) -> list[dict[str, Any]]:
    """Returns the runs as data for JSON; values that are not known are None."""
    return [
        run.status._asdict() | {"path": printable(run.status.path), "size": run.size}
        for run in runs
    ]


def printable(path: Path | str) -> str:
    r"""Returns a path as text that does nothing to a terminal.

    >>> printable("runs/a\x1b[2Jb"), printable("runs/\udcff")
    ('runs/a�[2Jb', 'runs/�')
    """
    return "".join(x if x.isprintable() else "�" for x in str(path))


def steps(run: Status) -> str:
    """Returns the steps that a run has done, as text."""
    if run.kind in OF_BATCHES.values():
        return UNKNOWN
    done = f"{run.step:,}"
    return done if run.total is None else f"{done} of {run.total:,}"


def number(value: float | None) -> str:
    """Formats a number; None becomes a dash."""
    return UNKNOWN if value is None else figure(value)


def ago(seconds: float) -> str:
    """Formats the time since a moment, in seconds since the epoch; 0: not known."""
    if not seconds:
        return UNKNOWN
    return f"{duration(max(0.0, time.time() - seconds))} ago"


def _cells(run: Listed) -> tuple[str, ...]:
    known = run.status
    return (
        printable(known.path),
        known.state,
        number(known.last),
        number(known.best),
        steps(known),
        ago(known.changed),
        f"{run.size / 2**20:,.1f} MiB",
    )


def _advice(run: Status) -> str:
    """Returns why a run did not finish, and the command that continues it."""
    why = f", {printable(run.why)}" if run.why else ""
    following = f"\n  {printable(run.next)}" if run.next else ""
    return f"{printable(run.path)}: {run.state}{why}{following}"

"""The log of a run, read on from where reading stopped."""

import collections
import json
import math
import os
import stat
from pathlib import Path
from typing import Any, BinaryIO

from ppo_jax.host.metrics.figures import BEST, SCORE
from ppo_jax.monitoring.curve import Curve

CHUNK = 2**24
"""Bytes that are read at once, and the length of the longest line: some 500 bytes for
each member of a population."""
FITTEST = f"best/{SCORE}"
CURVES = ("rollout/ep_rew_mean", SCORE, FITTEST, "time/fps", "warn/*")
"""Metrics that are drawn; the last one is the number of active alerts."""

Row = dict[str, Any]


class Tail:
    """A summary of a run's `metrics.jsonl`, in little memory however long that is.

    Args:
        path: Path of that file, which may not exist yet, or no longer.

    Attributes:
        curves: Curves by metric.
        rows: The last two rows.
        alerts: The last step at which each alert was active.
        score: The last evaluation; of a population, that of its fittest member.
        best: The best evaluation.
        odd: The number of lines that are no row.
        changed: When the file was last written, in seconds since the epoch.
    """

    def __init__(self, path: Path):
        self._path = path
        self._begin()

    def _begin(self) -> None:
        self.curves = {name: Curve() for name in CURVES}
        self.rows: collections.deque[Row] = collections.deque(maxlen=2)
        self.alerts: dict[str, int] = {}
        self.score: float | None = None
        self.best: float | None = None
        self.odd, self.changed = 0, 0.0
        self._clock: collections.deque[tuple[float, int]] = collections.deque(maxlen=20)
        self._offset, self._file, self._skipping = 0, None, False

    def read(self) -> None:
        """Reads new rows; a file that was cut back or replaced is read from scratch."""
        try:
            with open(self._path, "rb", opener=_as_it_is) as file:
                self._read(file)
        except OSError:
            self._begin()

    @property
    def last(self) -> Row:
        """The newest row; empty if there is none."""
        return self.rows[-1] if self.rows else {}

    @property
    def step(self) -> int:
        """Environment steps done by each member."""
        return self.last.get("step", 0)

    @property
    def speed(self) -> float | None:
        """Steps per second of late, evaluations included; None: not known."""
        if len(self._clock) < 2:
            return None
        (begun, first), (now, last) = self._clock[0], self._clock[-1]
        return (last - first) / (now - begun) if now > begun else None

    def _read(self, file: BinaryIO) -> None:
        found = os.fstat(file.fileno())
        if not stat.S_ISREG(found.st_mode):
            return self._begin()
        identity = found.st_dev, found.st_ino
        if identity != self._file or found.st_size < self._offset:
            self._begin()
        self._file, self.changed = identity, found.st_mtime
        file.seek(self._offset)
        while self._take(file.read(CHUNK)):
            file.seek(self._offset)

    def _take(self, chunk: bytes) -> bool:
        """Takes the whole lines of a chunk; returns whether there were any."""
        end = chunk.rfind(b"\n") + 1
        if not end:
            if len(chunk) < CHUNK:
                return False
            self._skipping, end = True, len(chunk)  # No row is as long as that.
        self._offset += end
        for line in chunk[:end].splitlines(True):
            if self._skipping:
                self._skipping = not line.endswith(b"\n")
                self.odd += not self._skipping
            else:
                self._add(line)
        return True

    def _add(self, line: bytes) -> None:
        row = _row(line)
        if row is None:
            self.odd += 1
            return
        step: int = row["step"]
        self.rows.append(row)
        active = [name for name, x in row.items() if name.startswith("warn/") and x > 0]
        self.alerts |= dict.fromkeys(active, step)
        values = row | {"warn/*": len(active)}
        for name, curve in self.curves.items():
            if name in values:
                curve.add(step, values[name])
        score = row.get(FITTEST if BEST in row else SCORE)
        if score is not None:
            self.score = score
            self.best = score if self.best is None else max(score, self.best)
        if "time/time_elapsed" in row:
            self._clock.append((row["time/time_elapsed"], step))


def _as_it_is(path: str, flags: int) -> int:
    """Opens a file; follows no link, and waits for no pipe."""
    return os.open(path, flags | os.O_NONBLOCK | os.O_NOFOLLOW)


def _row(line: bytes) -> Row | None:
    """Returns the finite numbers of a line; None: it is no row.

    >>> _row(b'{"step": 2, "x": null, "y": 1.5, "z": NaN}')
    {'step': 2, 'y': 1.5}
    >>> _row(b'{"y": 1.5}'), _row(b"[1]"), _row(b"{")
    (None, None, None)
    """
    try:
        found = json.loads(line)
        row = {name: value for name, value in found.items() if _is_number(value)}
    except (ValueError, AttributeError, OverflowError, RecursionError):
        return None
    return row if isinstance(row.get("step"), int) else None


def _is_number(value: Any) -> bool:
    return type(value) in (int, float) and math.isfinite(value)

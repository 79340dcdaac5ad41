"""Runs that several threads look at again and again."""

import contextlib
import threading
import time
from collections.abc import Iterator
from pathlib import Path

from ppo_jax.errors import UserError
from ppo_jax.host.run_dir.names import LOG
from ppo_jax.monitoring import finding
from ppo_jax.monitoring.status import RUNNING, Status, status
from ppo_jax.monitoring.tail import Tail

SECONDS = 1.0
"""The least seconds for which the results of a search are used."""
SEARCHES = 5
"""The next search waits at least this many times as long as the last one took."""


class Seen:
    """A run, as of the last look at it."""

    def __init__(self, name: str, run_dir: Path):
        self.name, self.run_dir = name, run_dir
        self.tail = Tail(run_dir / LOG)
        self.look()

    def look(self) -> None:
        """Reads the run's new rows and its status."""
        self.tail.read()
        self.status: Status = status(self.run_dir, self.tail)


class Watch:
    """The runs below a folder, as they are now.

    Args:
        root: The folder.

    Raises:
        UserError: If there is no such folder.
    """

    def __init__(self, root: Path):
        self.root = root
        self._place = root.resolve()
        self._runs: dict[str, Seen] = {}
        self._lock = threading.Lock()
        self._due = 0.0
        next(finding.find(root), None)  # Raises if there is no such folder.

    @contextlib.contextmanager
    def seen(self) -> Iterator[dict[str, Seen]]:
        """Yields the runs by name, which no other thread reads meanwhile.

        Runs under way come first; among equals, the last one that changed.
        """
        with self._lock:
            if time.monotonic() >= self._due:
                began = time.monotonic()
                self._search()
                now = time.monotonic()
                self._due = now + max(SECONDS, SEARCHES * (now - began))
            yield self._runs

    def _search(self) -> None:
        try:
            found = list(finding.find(self._place))
        except UserError:  # The folder has been deleted.
            found = []
        runs = sorted(map(self._seen, found), key=_rank)
        self._runs = {run.name: run for run in runs}

    def _seen(self, run_dir: Path) -> Seen:
        name = "/".join(run_dir.relative_to(self._place).parts)  # The root's is empty.
        known = self._runs.get(name)
        if known is None:
            return Seen(name, run_dir)
        known.look()
        return known


def _rank(run: Seen) -> tuple[bool, float, str]:
    now = run.status
    return now.state != RUNNING, -now.changed, run.name

"""A watchdog: a run that hangs is reported, and later its process is ended."""

import contextlib
import threading
from collections.abc import Iterator
from typing import Any, Self

from ppo_jax.host.process.console import Console, duration
from ppo_jax.host.process.exits import Exit

SPREAD = 3
"""Least patience, as a multiple of the longest silence so far."""
END = 4
"""Silence after which the process is ended, as a multiple of the patience."""


class Watchdog:
    """A timer of the silence since the run was last heard; a context manager.

    It is a thread, because a computation that hangs cannot be interrupted. It counts
    its own ticks, not the clock, so that a run that was suspended has not stalled.

    Args:
        seconds: Patience: the silence after which it reports. It grows with the longest
            silence that has come to an end.
        console: Console that prints its reports, and that it ends the process through.
        hint: Text on how to continue the run, printed at the end.
        tick: Seconds between two checks.
    """

    def __init__(self, seconds: int, console: Console, hint: str, tick: float = 0.5):
        self._seconds = seconds
        self._console = console
        self._hint = hint
        self._tick = tick
        self._silence = self._longest = 0.0
        self._spoken = self._asleep = False
        self._closed = threading.Event()

    def __enter__(self) -> Self:
        self._thread = threading.Thread(target=self._watch, daemon=True)
        self._thread.start()
        return self

    def __exit__(self, *_: Any) -> None:
        self._closed.set()
        self._thread.join()

    def heard(self) -> None:
        """Ends the silence: a computation of the run has come back."""
        self._longest = max(self._longest, self._silence)
        self._silence, self._spoken = 0.0, False

    @contextlib.contextmanager
    def asleep(self) -> Iterator[None]:
        """Ends the silence, and stops the timer during work that is not the run's."""
        self.heard()
        self._asleep = True
        try:
            yield
        finally:
            self._asleep = False

    def _watch(self) -> None:
        while not self._closed.wait(self._tick):
            if self._asleep:
                continue
            self._silence += self._tick
            patience = max(self._seconds, SPREAD * self._longest)
            if self._silence >= patience and not self._spoken:
                self._spoken = True
                self._say(f"the run ends after {duration(END * patience)}")
            if self._silence >= END * patience:
                self._say(f"giving up; {self._hint}")
                return self._console.leave(Exit.STALLED)

    def _say(self, consequence: str) -> None:
        self._console.say(
            f"nothing has come back for {duration(self._silence)}; {consequence}"
        )

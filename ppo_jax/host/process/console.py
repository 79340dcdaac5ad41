"""Output of a run: a progress bar in a terminal or a notebook, lines elsewhere."""

import importlib.util
import math
import os
import signal
import sys
import time
from collections.abc import Callable
from typing import Any, NamedTuple

from rich import progress
from rich.console import Console as Terminal

from ppo_jax.host.process import distributed
from ppo_jax.host.process.command import hush
from ppo_jax.host.process.exits import Exit


class Verbosity(NamedTuple):
    """Amount of a run's output."""

    notes: bool = True
    """Whether the run shows more than warnings."""
    seconds: float = 5.0
    """Least seconds between two lines of progress."""


SHOWN = {
    "return": "rollout/ep_rew_mean",
    "evaluation": "eval/mean_reward",
    "best": "best/eval/mean_reward",
}
"""Metrics that are shown beside the speed, by label."""
NORMAL = Verbosity()
QUIET = Verbosity(notes=False, seconds=math.inf)
VERBOSE = Verbosity(seconds=0.0)
TOGETHER = 0.25
"""Seconds after a signal, in which another one is the same."""


def verbosity(options: Any) -> Verbosity:
    """Returns the verbosity that `--quiet` and `--verbose` ask for."""
    return QUIET if options.quiet else VERBOSE if options.verbose else NORMAL


class _Terminal(Terminal):
    """A terminal, a pipe or a file: a run outlives whatever it is.

    Args:
        lost: What else is to be done where it takes nothing more.
        quiet: Whether to show nothing.
    """

    def __init__(self, lost: Callable[[], None], quiet: bool):
        super().__init__(quiet=quiet)
        self._lost = lost

    def _check_buffer(self) -> None:
        try:
            super()._check_buffer()
        except ValueError:  # The file was closed, or knows fewer characters.
            self.quiet = True
        except OSError:
            self.on_broken_pipe()

    def on_broken_pipe(self) -> None:
        self.quiet = True
        self._lost()


class Console:
    """Prints lines and, once started, progress over environment steps.

    In a job, only the first process prints.

    Args:
        verbosity: The amount of output.
    """

    def __init__(self, verbosity: Verbosity = NORMAL):
        self._verbosity = verbosity
        self._terminal = _Terminal(self.lost, quiet=not distributed.is_first())
        self._bar = progress.Progress(
            progress.BarColumn(),
            progress.TaskProgressColumn(),
            progress.TextColumn("{task.completed:,.0f} of {task.total:,.0f} steps"),
            progress.TextColumn("{task.description}"),
            progress.TimeRemainingColumn(),
            console=self._terminal,
            disable=not (verbosity.notes and _is_live(self._terminal)),
        )
        with_lines = verbosity == VERBOSE or not _is_live(self._terminal)
        self._next = -math.inf if with_lines else math.inf
        self._total = 0
        self._known: dict[str, str] = {}

    def start(self, total: int, done: int) -> None:
        """Begins the bar.

        Args:
            total: Environment steps of the whole run.
            done: Environment steps done before.
        """
        self._total = total
        self._task = self._bar.add_task("compiling", total=total, completed=done)
        self._bar.start()

    def say(self, text: str) -> None:
        """Prints a line above the bar."""
        self._terminal.print(text, highlight=False, markup=False, soft_wrap=True)

    def note(self, text: str) -> None:
        """Prints a line that is neither a warning nor an answer, unless quiet."""
        if self._verbosity.notes:
            self.say(text)

    def update(self, step: int, metrics: dict[str, float]) -> None:
        """Shows the progress of a run, and its newest known metrics."""
        if not self._known:
            self.note(f"compiled in {duration(metrics['time/compiling'])}")
        self._known |= _known(metrics)
        text = "  ".join(self._known.values())
        self._bar.update(self._task, completed=step, description=text)
        now = time.monotonic()
        if now >= self._next:
            self._next = now + self._verbosity.seconds
            self.note(f"{step:>12,} of {self._total:,} steps  {text}")

    def close(self) -> None:
        """Ends the bar."""
        self._bar.stop()

    def heard(self, number: int, *_: Any) -> None:
        """Hears of a signal from Python, as soon as a phase has come back."""

    def lost(self) -> None:
        """Silences all else that the process prints: nobody reads it any more."""
        hush()

    def leave(self, status: int) -> None:
        """Ends the process at once, from any thread; what is on disk stays whole."""
        try:
            self.close()
            sys.stdout.flush()
            sys.stderr.flush()
        finally:
            os._exit(status)


class Calls:
    """Tells signals apart: those that follow each other at once are one.

    A terminal signals a launcher and what it has begun, and the launcher passes it on;
    a key that is held down repeats itself.

    >>> calls = Calls()
    >>> calls.another(), calls.another()
    (True, False)
    """

    def __init__(self):
        self._last = -math.inf

    def another(self) -> bool:
        """Returns whether the signal of now is another one than the last."""
        last, self._last = self._last, time.monotonic()
        return self._last >= last + TOGETHER


class Guest(Console):
    """Console of a run in a script or notebook, which goes on after the run.

    An interrupt ends the run alone. Any other signal is passed on once the run is over
    and handlers are as before, because it asks the whole process to end.

    Args:
        verbosity: The amount of output.
    """

    def __init__(self, verbosity: Verbosity = NORMAL):
        super().__init__(verbosity)
        self._calls, self._asked, self._owed = Calls(), False, 0

    def close(self) -> None:
        super().close()
        if self._owed:
            signal.raise_signal(self._owed)

    def heard(self, number: int, *_: Any) -> None:
        if number != signal.SIGINT:
            self._owed = number
        if not self._calls.another():
            return
        if self._asked:
            raise KeyboardInterrupt
        self._asked = True

    def lost(self) -> None:
        """Leaves stdout alone: the next line of its owner may be read again."""

    def leave(self, status: int) -> None:
        if status != Exit.INTERRUPTED:
            super().leave(status)


def figure(value: float) -> str:
    """Formats a number for reading.

    >>> figure(500.0), figure(0.01234), figure(9999.7), figure(-123456.7)
    ('500', '0.01234', '10,000', '-123,457')
    """
    return f"{value:,.0f}" if abs(value) >= 9999.5 else f"{value:.4g}"


def duration(seconds: float) -> str:
    """Formats a time for reading.

    >>> [duration(seconds) for seconds in (4.21, 40, 1800, 12600)]
    ['4.2 s', '40 s', '30 min', '3.5 h']
    """
    if seconds < 120:
        return f"{seconds:.2g} s" if seconds < 10 else f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 7200 else f"{seconds / 3600:.1f} h"


def _is_live(terminal: Terminal) -> bool:
    """Returns whether a bar can move: in a terminal, or in a notebook with widgets."""
    widgets = importlib.util.find_spec("ipywidgets") is not None
    return terminal.is_terminal or (terminal.is_jupyter and widgets)


def _known(metrics: dict[str, float]) -> dict[str, str]:
    """Formats the speed and the finite metrics of a row that are shown, by label."""
    texts = {"speed": f"{metrics['time/fps']:,.0f} steps/s"}
    for label, name in SHOWN.items():
        value = metrics.get(name, math.nan)
        if math.isfinite(value):
            texts[label] = f"{label} {figure(value)}"
    return texts

"""Ctrl-C and SIGTERM: the first asks a run to stop, the second stops it at once.

SIGHUP, the end of a terminal, acts as SIGTERM, unless the run was begun to outlive it.
"""

import os
import signal
import threading
from typing import Any, Self

from ppo_jax.host.process.console import Calls, Console
from ppo_jax.host.process.exits import Exit

SIGNALS = tuple(
    signal.Signals[name]
    for name in ("SIGINT", "SIGTERM", "SIGHUP")
    if hasattr(signal, name)  # On Windows, there is no SIGHUP.
)


class Interrupt:
    """Listens for signals while a run is under way; a context manager.

    An exception inside a phase would lose the population, which was donated to it. And
    Python calls a handler only when the phase has come back, so a thread listens. Only
    the main thread can receive signals: a run in another thread receives none.

    Args:
        console: Console that prints the answer to a signal.
    """

    def __init__(self, console: Console):
        self.asked = False
        self._console, self._calls = console, Calls()

    def __enter__(self) -> Self:
        self._hears = threading.current_thread() is threading.main_thread()
        if self._hears:
            self._begin()
        return self

    def __exit__(self, *_: Any) -> None:
        if self._hears:
            self._end()

    def _begin(self) -> None:
        self._ear, self._mouth = os.pipe()
        os.set_blocking(self._mouth, False)
        self._wakeup = signal.set_wakeup_fd(self._mouth)
        heard = [x for x in SIGNALS if not _outlives(x)]
        self._handlers = {x: signal.signal(x, self._console.heard) for x in heard}
        self._listener = threading.Thread(target=self._listen, daemon=True)
        self._listener.start()

    def _end(self) -> None:
        for number, handler in self._handlers.items():
            signal.signal(number, handler or signal.SIG_DFL)  # None: not Python's.
        signal.set_wakeup_fd(self._wakeup)
        os.close(self._mouth)
        self._listener.join()
        os.close(self._ear)

    def _listen(self) -> None:
        while heard := os.read(self._ear, 1):
            if heard[0] not in SIGNALS or not self._calls.another():
                continue
            if self.asked:
                self._console.leave(Exit.INTERRUPTED)
                continue
            self.asked = True
            self._console.say("stopping after this phase; once more to stop at once")


def _outlives(number: signal.Signals) -> bool:
    """Returns whether a run outlives a signal, as under `nohup` its terminal's end."""
    return number.name == "SIGHUP" and signal.getsignal(number) == signal.SIG_IGN

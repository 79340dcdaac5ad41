"""Durations of a call and of the compilation of its programs."""

import time
from typing import Any, Self

from jax import monitoring

COMPILED = "/jax/core/compile/backend_compile_duration"


class Stopwatch:
    """A timer of the code that runs within it; a context manager.

    Attributes:
        compiling: Seconds until the last program was compiled, tracing included; 0 if
            none was. A program runs when all that it calls is compiled.
        running: Seconds from then on.
    """

    def __enter__(self) -> Self:
        self.compiling = 0.0
        self._began = time.perf_counter()
        monitoring.register_event_duration_secs_listener(self._hear)
        return self

    def __exit__(self, *_: Any) -> None:
        monitoring.unregister_event_duration_listener(self._hear)
        self.running = time.perf_counter() - self._began - self.compiling

    def _hear(self, event: str, duration_secs: float, **_: Any) -> None:
        if event == COMPILED:
            self.compiling = time.perf_counter() - self._began

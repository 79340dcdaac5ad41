"""Sinks, which get the rows of a run besides its directory."""

from collections.abc import Mapping
from typing import NamedTuple

from ppo_jax.component.definition import component
from ppo_jax.errors import missing


class Beginning(NamedTuple):
    """A run that begins or is resumed, as described to a sink."""

    name: str | None
    """Name of its directory; None: it is kept in memory alone."""
    config: dict[str, str]
    """Every field of the experiment as text, by path."""
    step: int
    """Environment steps done; 0: it begins."""
    id: str
    """Identifier of this run alone, which stays the same whenever it is resumed."""


@component
class Sink:
    """A place that gets every row of a run: a service, a file, a message.

    A subclass defines `write`. If that raises, the run goes on without this sink. The
    run waits for it, so it should hand on slow work. `begin` and `end` are optional.

    A resumed run is cut back to its checkpoint. Rows from `Beginning.step` on are
    written again, with the same values on a CPU. A sink may forget those that it has,
    or keep them and ignore rows that come twice.
    """

    def validate(self) -> None:
        """Raises a `Missing` for a sink that does not define `write`."""
        if type(self).write is Sink.write:
            raise missing(self, "write")

    def begin(self, run: Beginning) -> None:
        """Receives a run before its first row, and each time it is resumed."""

    def write(self, step: int, metrics: Mapping[str, float]) -> None:
        """Receives a row.

        Args:
            step: Environment steps done.
            metrics: Finite numbers by name.
        """
        raise missing(self, "write")

    def end(self) -> None:
        """Is called after the last row, however the run ended."""

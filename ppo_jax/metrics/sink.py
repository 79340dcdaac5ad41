"""Where the rows of a run go besides its directory."""

from collections.abc import Mapping
from typing import NamedTuple

from ppo_jax.component.definition import component
from ppo_jax.errors import missing


class Beginning(NamedTuple):
    """What a sink hears of a run that begins, or goes on."""

    name: str | None
    """That of its directory; None: it is kept in memory alone."""
    config: dict[str, str]
    """Every field of the experiment as text, by path."""
    step: int
    """Environment steps done; 0: it begins."""
    id: str
    """Of this run and no other one, and the same whenever it goes on."""


@component
class Sink:
    """A place that is told every row of a run: a service, a file, a message.

    A subclass has a `write`; what it raises costs the run nothing but this sink. It is
    waited for, so it is to hand on what takes long. `begin` and `end` are there for
    what needs them.

    A run that goes on is cut back to its checkpoint. Rows that were told of later steps
    are told again, the same ones on a CPU: what a sink knows beyond `Beginning.step` it
    may forget, or keep and ignore what it hears twice.
    """

    def validate(self) -> None:
        """Raises a `Missing` for a sink that takes no rows."""
        if type(self).write is Sink.write:
            raise missing(self, "write")

    def begin(self, run: Beginning) -> None:
        """Hears of a run before its first row, and each time it goes on."""

    def write(self, step: int, metrics: Mapping[str, float]) -> None:
        """Takes a row.

        Args:
            step: Environment steps done.
            metrics: Finite numbers by name.
        """
        raise missing(self, "write")

    def end(self) -> None:
        """Hears that no row follows, whatever ended the run."""

"""Records that keep a run: in a run directory, or in memory alone."""

import os
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from ppo_jax.component import former
from ppo_jax.host.process import distributed
from ppo_jax.host.run_dir import claims
from ppo_jax.host.run_dir.ending import Ending, recorded
from ppo_jax.host.run_dir.lineage import Family, Lineage
from ppo_jax.host.run_dir.logger import Logger, Rows
from ppo_jax.metrics import Metric
from ppo_jax.state import Population
from ppo_jax.types import PyTree

if TYPE_CHECKING:
    from ppo_jax.host.run_dir.checkpoint import Checkpointer

Saved = tuple[int, Population, dict]
"""Updates done, a population, and the metadata that were saved with it."""


class Past(NamedTuple):
    """State of a run's log before its next row."""

    step: int
    """Environment steps done."""
    lineage: list[dict[str, Any]]
    """The generations so far."""
    names: former.Names
    """Present names of tuples' items by their former names in the run's rows."""
    own: tuple[Metric, ...]
    """Descriptions of the experiment's own metrics."""


class Memory:
    """Keeps a run in memory as long as this object exists, and writes nothing.

    Attributes:
        name: Name of the run, if it has one.
        resumes: Whether the run goes on from a checkpoint.
        ending: Ending of the run, which is set by its code while this is `opened`.
        rows: Rows of metrics, once this is `written`.
        family: Generations of the run, once this is `written`.
    """

    name: str | None = None
    resumes = False
    ending: Ending
    rows: Rows
    family: Family

    def __str__(self) -> str:
        return "in memory"

    @contextmanager
    def opened(self) -> Iterator[None]:
        """Opens the record while a run lasts; afterwards everything is kept."""
        self.ending, self._opened = Ending(), time.monotonic()
        yield

    def prepare(self) -> None:
        """Prepares to restore and to save."""

    def restore(
        self, template: Population, make: Callable[[], Population]
    ) -> Saved | None:
        """Restores the newest whole checkpoint; newer saves are put out of the way.

        Args:
            template: A population, for shapes and devices.
            make: Makes a population before its first update, for statistics that begin
                from scratch.

        Returns:
            The checkpoint; None: there is none.

        Raises:
            CheckpointError: If there are checkpoints, and none can be restored.
        """

    @contextmanager
    def written(self, past: Past) -> Iterator[None]:
        """Opens the rows and the generations, which follow those of the past."""
        self.rows, self.family = Rows((), self._opened), Family(past.lineage)
        yield

    def save(self, update: int, population: PyTree, fitness: float, meta: dict) -> None:
        """Saves a checkpoint; see `Checkpointer.save`."""


def nothing() -> None:
    """Writes nothing, as the experiment is kept already."""


class Folder(Memory):
    """Writes a run to its directory, in which no other process may be at work.

    Args:
        run_dir: The directory.
        resumes: Whether the run goes on from its newest checkpoint.
        keep: Writes the experiment there, once the experiment is known to fit.
    """

    def __init__(
        self, run_dir: Path, resumes: bool = False, keep: Callable[[], None] = nothing
    ):
        self.run_dir, self.name = run_dir, os.path.basename(os.path.abspath(run_dir))
        self._home = run_dir.absolute()  # A callback may go to another folder.
        self.resumes, self._keep = resumes, keep

    def __str__(self) -> str:
        return f"in {self.run_dir}"

    @contextmanager
    def opened(self) -> Iterator[None]:
        if self.resumes:
            claims.require_whole(self.run_dir)
        with (
            super().opened(),
            ExitStack() as self._recorded,
            ExitStack() as self._prepared,
        ):
            if not self.resumes:
                self._replace_ending()
            yield

    def prepare(self) -> None:
        self._home.mkdir(parents=True, exist_ok=True)
        self._prepared.callback(claims.note_saved, self._home)  # Once it is whole.
        self._checkpoints = self._prepared.enter_context(checkpoints(self._home))

    def restore(
        self, template: Population, make: Callable[[], Population]
    ) -> Saved | None:
        if self._checkpoints.empty:
            self._checkpoints.rewind(0)
            return None
        saved = self._checkpoints.restore(template, make=make)
        self._checkpoints.rewind(saved[0])
        return saved

    @contextmanager
    def written(self, past: Past) -> Iterator[None]:
        distributed.first_only(self._begin)
        if self.resumes:  # What was refused until now leaves the run as it was.
            self._replace_ending()
        with distributed.folder(self._home) as folder:
            self.family = Lineage(folder, past.lineage)
            rows = Logger(folder, past.step, past.names, past.own, self._opened)
            with closing(rows) as self.rows:
                if self.resumes:
                    rows.tell_lost(past.step)
                yield

    def save(self, update: int, population: PyTree, fitness: float, meta: dict) -> None:
        self.rows.settle()  # They reach as far as the checkpoint, whatever happens.
        claims.note_saved(self._home)
        self._checkpoints.save(update, population, fitness, meta)

    def _replace_ending(self) -> None:
        self.ending = self._recorded.enter_context(recorded(self._home))

    def _begin(self) -> None:
        """Keeps the experiment, and that nothing is saved yet, before the first row."""
        self._keep()
        claims.note_unsaved(self._home)


def checkpoints(run_dir: Path) -> "closing[Checkpointer]":
    """Returns the checkpoints of a run directory, in a context that closes them.

    They are imported here, as orbax takes long to import.
    """
    from ppo_jax.host.run_dir.checkpoint import Checkpointer

    return closing(Checkpointer(run_dir))

"""Where a run is kept: in a run directory, or in memory alone."""

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
"""Updates, a population and what was saved beside it."""


class Past(NamedTuple):
    """What there is to know of a run before its next row."""

    step: int
    """Environment steps done."""
    lineage: list[dict[str, Any]]
    """The generations so far."""
    names: former.Names
    """How its rows call items of tuples, if a version before wrote them."""
    own: tuple[Metric, ...]
    """What the experiment's own metrics are."""


class Memory:
    """Keeps a run as long as somebody holds it, and writes nothing.

    Attributes:
        name: What it is called, if anything.
        resumes: Whether the run goes on from what was saved.
        ending: To be said by whoever runs it, while it is `opened`.
        rows: Of metrics, while it is `written`.
        family: Its generations, while it is `written`.
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
        """The run begins, and ends; everything is where it is kept afterwards."""
        self.ending, self._opened = Ending(), time.monotonic()
        yield

    def prepare(self) -> None:
        """Makes ready to restore and to save."""

    def restore(self, template: Population) -> Saved | None:
        """The newest whole checkpoint, if there is any; what is newer is removed.

        Raises:
            CheckpointError: If none of them can be restored.
        """

    @contextmanager
    def written(self, past: Past) -> Iterator[None]:
        """Makes ready for rows and generations."""
        self.rows, self.family = Rows((), self._opened), Family(past.lineage)
        yield

    def save(self, update: int, population: PyTree, fitness: float, meta: dict) -> None:
        """Saves a checkpoint; see `Checkpointer.save`."""


def nothing() -> None:
    """Keeps what is kept already."""


class Folder(Memory):
    """Writes a run to its directory, which nobody else is to be at work in.

    Args:
        run_dir: The directory.
        resumes: Whether the run goes on from its newest checkpoint.
        keep: Writes the experiment there, once that is known to fit.
    """

    def __init__(
        self, run_dir: Path, resumes: bool = False, keep: Callable[[], None] = nothing
    ):
        self.run_dir, self.name = run_dir, run_dir.name
        self.resumes, self._keep = resumes, keep

    def __str__(self) -> str:
        return f"in {self.run_dir}"

    @contextmanager
    def opened(self) -> Iterator[None]:
        if self.resumes:
            claims.require_whole(self.run_dir)
        with (
            super().opened(),
            recorded(self.run_dir) as self.ending,
            ExitStack() as self._prepared,
        ):
            yield

    def prepare(self) -> None:
        self.run_dir.mkdir(parents=True, exist_ok=True)
        self._checkpoints = self._prepared.enter_context(checkpoints(self.run_dir))

    def restore(self, template: Population) -> Saved | None:
        if self._checkpoints.empty:
            self._checkpoints.rewind(0)
            return None
        saved = self._checkpoints.restore(template)
        self._checkpoints.rewind(saved[0])
        return saved

    @contextmanager
    def written(self, past: Past) -> Iterator[None]:
        distributed.first_only(self._keep)
        with distributed.folder(self.run_dir) as folder:
            self.family = Lineage(folder, past.lineage)
            self.rows = Logger(folder, past.step, past.names, past.own, self._opened)
            with closing(self.rows):
                yield

    def save(self, update: int, population: PyTree, fitness: float, meta: dict) -> None:
        self._checkpoints.save(update, population, fitness, meta)


def checkpoints(run_dir: Path) -> "closing[Checkpointer]":
    """The checkpoints of a run directory, to be closed; orbax takes long to import."""
    from ppo_jax.host.run_dir.checkpoint import Checkpointer

    return closing(Checkpointer(run_dir))

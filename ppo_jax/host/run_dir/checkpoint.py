"""Saving and restoring whole populations: asynchronous, atomic, never pickled."""

import contextlib
import copy
import errno
import gc
import logging
import math
import re
import shutil
import sys
import textwrap
import warnings
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import orbax.checkpoint as ocp
from orbax.checkpoint.checkpoint_managers import preservation_policy as keep

from ppo_jax.errors import UserError
from ppo_jax.host.process import distributed
from ppo_jax.host.run_dir import bundles, files, templates
from ppo_jax.host.run_dir.names import CHECKPOINTS
from ppo_jax.transforms.statistics import versions
from ppo_jax.types import PyTree

logging.getLogger("absl").setLevel(logging.CRITICAL)
logging.getLogger("asyncio").addFilter(lambda x: "orbax" not in x.getMessage())
ECHOES = (
    "Event loop is closed",
    "Encountered error while reading array",
    "coroutine 'Store.",
)
"""What orbax's threads print as tracebacks, beside the exception that it raises."""


def _drop_echoes(
    unraisable: Any, report: Any = sys.unraisablehook, echoes: tuple = ECHOES
) -> None:
    """Bound to what it needs: modules are empty when a process ends."""
    if not str(unraisable.exc_value).startswith(echoes):
        report(unraisable)


sys.unraisablehook = _drop_echoes

PASSING = {
    *(errno.EMFILE, errno.ENFILE, errno.ENOMEM),
    *(errno.EACCES, errno.EIO, errno.ESTALE),
}
"""What the system says of a file that may be whole."""
SYSTEM = re.compile(r"\[OS error (\d+)")
"""How tensorstore passes on what that says."""


class CheckpointError(UserError):
    """There is no checkpoint that can be restored; the message says why."""


class Checkpointer:
    """Checkpoints of a run directory: the last ones and the best one.

    Args:
        run_dir: The run's directory.
        last: How many of the newest to keep; an older one stands in for a damaged one.
    """

    def __init__(self, run_dir: Path, last: int = 2):
        self._fitness = _Fitness()
        kept = keep.AnyPreservationPolicy([keep.LatestN(last), self._fitness])
        options = ocp.CheckpointManagerOptions(preservation_policy=kept, create=False)
        self._path = Path(run_dir).absolute() / CHECKPOINTS
        self._manager = ocp.CheckpointManager(self._path, options=options)
        for step in self._manager.all_steps():
            with contextlib.suppress(Exception):  # It is damaged, and never the best.
                self._fitness[step] = self._meta(step)["fitness"]

    def save(self, update: int, population: PyTree, fitness: float, meta: dict) -> None:
        """Starts to save; afterwards the population may be donated, and `meta` changed.

        Args:
            update: Updates done.
            population: What to save.
            fitness: By which the best is kept; one that is not finite never is.
            meta: What else to remember, as JSON.

        Raises:
            OSError: If this save or the one before cannot be written.
        """
        score = fitness if math.isfinite(fitness) else None
        together = bundles.planned(population)
        meta = copy.deepcopy(meta) | {
            "fitness": score,
            "leaves": templates.leaves(population),
            "together": together,
            "versions": versions(population),
        }
        args = ocp.args.Composite(
            population=ocp.args.StandardSave(bundles.saved(population, together)),
            meta=ocp.args.JsonSave(meta),
        )
        self._fitness[update] = score
        try:
            self._path.mkdir(parents=True, exist_ok=True)
            self._manager.save(update, args=args)
        except Exception as error:
            raise self._unwritable(error) from error

    @property
    def empty(self) -> bool:
        """Whether nothing was ever saved whole."""
        return not self._manager.all_steps()

    def restore(
        self, template: PyTree, best: bool = False, asked: int | None = None
    ) -> tuple[int, Any, dict]:
        """The newest whole checkpoint, or the best, or the one that is asked for.

        Args:
            template: A population before its first update, for shapes and devices; what
                begins anew is taken from it.
            best: Whether to prefer the fittest one.
            asked: The update of the one to restore, and no other.

        Returns:
            Its update, its population and its metadata.

        Raises:
            CheckpointError: If none can be read, or there is none such, or one has
                other leaves, or statistics of a newer version.
            OSError: If the system cannot read one now that may be whole.

        Warns:
            UserWarning: If statistics of an older version begin anew.
        """
        return self._restore(template, lambda: template, best, asked)

    def read(
        self, make: Callable[[], PyTree], best: bool = False, asked: int | None = None
    ) -> tuple[int, Any, dict]:
        """As `restore`, as arrays of NumPy; nothing is compiled to read them into.

        Args:
            make: Makes a population before its first update, if something begins anew.
            best: Whether to prefer the fittest one.
            asked: The update of the one to read, and no other.
        """
        return self._restore(templates.blank(make), make, best, asked)

    def _restore(
        self,
        template: PyTree,
        make: Callable[[], PyTree],
        best: bool,
        asked: int | None,
    ) -> tuple[int, Any, dict]:
        steps = sorted(self._manager.all_steps(), reverse=True)
        if best:
            first = self._fitness.best(steps)
            steps = sorted(steps, key=lambda step: step != first)
        if asked is not None:
            if asked not in steps:
                there = ", ".join(map(str, sorted(steps))) or "none"
                said = f"no checkpoint {asked}; there are: {there}"
                raise CheckpointError(f"{self._path}: {said}")
            steps = [asked]
        for step in steps:
            try:
                return step, *self._found(step, template, make)
            except CheckpointError:
                raise
            except Exception as error:
                if _passes(error):
                    said = f"{self._path / str(step)}: cannot be read now"
                    raise OSError(f"{said} ({_first_line(error)})") from error
                if distributed.is_first():
                    print(f"checkpoint {step} cannot be read ({_first_line(error)})")
            gc.collect()  # Coroutines that orbax left complain now, not at the end.
        missing = "can be restored" if steps else "was saved: the run ended before that"
        raise CheckpointError(f"{self._path}: no checkpoint {missing}")

    def _found(
        self, step: int, template: PyTree, make: Callable[[], PyTree]
    ) -> tuple[PyTree, dict]:
        meta = self._meta(step)
        wrong = templates.differences(meta["leaves"], templates.leaves(template))
        if wrong:
            place = self._path / str(step)
            said = f"{place}: its leaves are not those of this experiment:"
            raise CheckpointError("\n  ".join([said, *wrong]))
        stale = self._stale(step, meta, template)
        population = self._population(step, meta, template)
        return templates.anew(population, make(), stale) if stale else population, meta

    def _population(self, step: int, meta: dict, template: PyTree) -> PyTree:
        """What was saved; before leaves were saved together, each was by itself."""
        together = meta.get("together")
        whole = together is None
        wanted = template if whole else bundles.wanted(template, together)
        args = ocp.args.Composite(population=ocp.args.StandardRestore(wanted))
        found = self._manager.restore(step, args=args)["population"]
        return found if whole else bundles.restored(found, template, together)

    def _stale(self, step: int, meta: dict, template: PyTree) -> set[str]:
        """The kinds of statistics in a population that another version has written."""
        stale = set()
        for name, now in versions(template).items():
            was = meta.get("versions", {}).get(name, 0)
            said = f"{self._path / str(step)}: {name} is of version {was}"
            if was > now:
                raise CheckpointError(f"{said}, and this ppo_jax knows {now}")
            if was < now:
                warnings.warn(
                    f"{said}, and this is {now}: its statistics begin anew",
                    stacklevel=5,  # Whoever restores.
                )
                stale.add(name)
        return stale

    def _meta(self, step: int) -> dict:
        args = ocp.args.Composite(meta=ocp.args.JsonRestore())
        return self._manager.restore(step, args=args)["meta"]

    def rewind(self, update: int) -> None:
        """Sets aside what is newer than an update; removes saves that were cut off."""

        def clear():
            for path in [*self._path.glob("*")]:
                step, cut_off, _ = path.name.partition(".orbax-checkpoint-tmp")
                if cut_off and step.isdecimal():
                    shutil.rmtree(path)
                elif step.isdecimal() and int(step) > update:
                    print(f"checkpoint {step} is set aside in {files.set_aside(path)}")

        distributed.first_only(clear)
        self._manager.reload()

    def close(self) -> None:
        """Waits until everything is on disk.

        Raises:
            OSError: If the last save cannot be written.
        """
        try:
            self._manager.wait_until_finished()
        except Exception as error:
            raise self._unwritable(error) from error
        finally:
            self._manager.close()

    def _unwritable(self, error: Exception) -> OSError:
        return OSError(
            f"{self._path}: a checkpoint cannot be saved ({_first_line(error)})"
        )


class _Fitness(dict[int, float | None], keep.PreservationPolicy):
    """What every checkpoint scored, of which the best is kept."""

    def best(self, steps: Iterable[int]) -> int | None:
        scored = [(self[step], step) for step in steps if self.get(step) is not None]
        return max(scored)[1] if scored else None

    def should_preserve(self, checkpoints: Any, *, context: Any) -> list[bool]:
        best = self.best(info.step for info in checkpoints)
        return [info.step == best for info in checkpoints]


def _passes(error: Exception) -> bool:
    """Whether what could not be read may be read later.

    >>> _passes(OSError(errno.EMFILE, "many")), _passes(FileNotFoundError(2, "none"))
    (True, False)
    >>> _passes(ValueError('Error reading "x": [OS error 5: EIO Input/output error]'))
    True
    """
    told = SYSTEM.search(str(error))
    number = int(told[1]) if told else getattr(error, "errno", None)
    return isinstance(error, MemoryError) or number in PASSING


def _first_line(error: Exception) -> str:
    line = next(iter(str(error).splitlines()), "")
    return textwrap.shorten(f"{type(error).__name__}: {line}", 200, placeholder=" …")

"""Saving and restoring whole populations: asynchronous, atomic, never pickled."""

import contextlib
import copy
import gc
import logging
import math
import shutil
import sys
import threading
import warnings
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import jax
import orbax.checkpoint as ocp
from orbax.checkpoint.checkpoint_managers import preservation_policy as keep

from ppo_jax.errors import UserError
from ppo_jax.host.process import distributed
from ppo_jax.host.run_dir import bundles, damage, files, lineage, templates
from ppo_jax.host.run_dir.names import CHECKPOINTS
from ppo_jax.transforms.statistics import versions
from ppo_jax.types import PyTree

logging.getLogger("absl").setLevel(logging.CRITICAL)
logging.getLogger("asyncio").addFilter(lambda x: "orbax" not in x.getMessage())
sys.unraisablehook = damage.drop_echoes


class CheckpointError(UserError):
    """Error if no checkpoint can be restored; the message says why."""


class Checkpointer:
    """Checkpoints of a run directory: the last ones and the best one.

    Args:
        run_dir: The run's directory.
        last: Number of newest checkpoints to keep; older ones replace damaged ones.

    Raises:
        OSError: If one of them cannot be read now, though it may be whole.
    """

    _beginning = threading.Lock()  # Orbax takes two saves that begin at once for one.

    def __init__(self, run_dir: Path, last: int = 2):
        self._fitness = _Fitness()
        kept = keep.AnyPreservationPolicy([keep.LatestN(last), self._fitness])
        options = ocp.CheckpointManagerOptions(preservation_policy=kept, create=False)
        self._path = Path(run_dir).absolute() / CHECKPOINTS
        self._manager = ocp.CheckpointManager(self._path, options=options)
        with contextlib.ExitStack() as unread:
            unread.callback(self._manager.close)
            self._rate()
            unread.pop_all()

    def save(self, update: int, population: PyTree, fitness: float, meta: dict) -> None:
        """Starts to save; afterwards the population may be donated, and `meta` changed.

        Args:
            update: Updates done.
            population: The population to save.
            fitness: Fitness by which the best checkpoint is kept; a checkpoint whose
                fitness is not finite is never the best.
            meta: Other values to save, for JSON; the `lineage` in them is packed.

        Raises:
            OSError: If this save or the one before cannot be written.
        """
        score = fitness if math.isfinite(fitness) else None
        together = bundles.planned(population)
        arrays = bundles.saved(population, together)
        meta = copy.deepcopy(meta) | {
            "fitness": score,
            "leaves": templates.leaves(population),
            "sums": bundles.sums(arrays),
            "together": together,
            "versions": versions(population),
        }
        args = ocp.args.Composite(
            population=ocp.args.StandardSave(arrays),
            meta=ocp.args.JsonSave(meta),
        )
        self._fitness[update] = score
        try:
            self._path.mkdir(parents=True, exist_ok=True)
            with self._beginning:
                self._manager.save(update, args=args)
        except Exception as error:
            raise self._unwritable(error) from error

    @property
    def empty(self) -> bool:
        """Whether the directory has no whole checkpoint."""
        return not self._manager.all_steps()

    def restore(
        self,
        template: PyTree,
        best: bool = False,
        asked: int | None = None,
        make: Callable[[], PyTree] | None = None,
    ) -> tuple[int, Any, dict]:
        """Restores the newest whole checkpoint, the best one, or a requested one.

        Args:
            template: A population, for shapes and devices.
            best: Whether to prefer the fittest checkpoint.
            asked: Updates of the only checkpoint to restore; None: any.
            make: Makes a population before its first update, for statistics that begin
                from scratch; None: the template is one.

        Returns:
            The checkpoint's updates, its population and its metadata, whose `lineage`
            is a list of generations.

        Raises:
            CheckpointError: If no checkpoint can be read, the requested one does not
                exist, or one has other leaves, or statistics of a newer version.
            OSError: If the system cannot read a checkpoint now that may be whole.

        Warns:
            UserWarning: If statistics of an older version begin from scratch.
        """
        return self._restore(template, make or (lambda: template), best, asked)

    def read(
        self, make: Callable[[], PyTree], best: bool = False, asked: int | None = None
    ) -> tuple[int, Any, dict]:
        """Restores as `restore` does, to arrays of NumPy, which needs no compilation.

        Args:
            make: Makes a population before its first update, for statistics that begin
                from scratch.
            best: Whether to prefer the fittest checkpoint.
            asked: Updates of the only checkpoint to read; None: any.
        """
        return self._restore(templates.blank(jax.eval_shape(make)), make, best, asked)

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
                message = f"no checkpoint {asked}; there are: {there}"
                raise CheckpointError(f"{self._path}: {message}")
            steps = [asked]
        for step in steps:
            try:
                return step, *self._found(step, template, make)
            except CheckpointError:
                raise
            except Exception as error:
                self._require_damaged(step, error)
                if self._is_outdated():
                    self._rate()
                    return self._restore(template, make, best, asked)
                if distributed.is_first():
                    print(f"checkpoint {step} cannot be read ({damage.cause(error)})")
            gc.collect()  # Coroutines that orbax left complain now, not at the end.
        missing = "can be restored" if steps else "was saved: the run ended before that"
        raise CheckpointError(f"{self._path}: no checkpoint {missing}")

    def _found(
        self, step: int, template: PyTree, make: Callable[[], PyTree]
    ) -> tuple[PyTree, dict]:
        meta = self._meta(step)
        meta["lineage"] = lineage.unpacked(meta.get("lineage", []))
        wrong = templates.differences(meta["leaves"], templates.leaves(template))
        if wrong:
            place = self._path / str(step)
            message = f"{place}: its leaves are not those of this experiment:"
            raise CheckpointError("\n  ".join([message, *wrong]))
        stale = self._stale(step, meta, template)
        population = self._population(step, meta, template)
        return templates.anew(population, make(), stale) if stale else population, meta

    def _population(self, step: int, meta: dict, template: PyTree) -> PyTree:
        """Returns the saved population; earlier versions saved each leaf by itself."""
        together = meta.get("together")
        if together is None:  # Orbax asks for fields that were None, and no others.
            place = self._path / str(step) / "population"
            with ocp.StandardCheckpointer() as reader:
                saved = reader.metadata(place).item_metadata.tree
            found = self._arrays(step, templates.arranged(template, saved))
            return templates.arranged(found, template)
        wanted = bundles.wanted(template, together)
        found = self._arrays(step, wanted)
        bundles.require_unchanged(found, meta.get("sums", {}))
        return bundles.restored(found, template, together)

    def _arrays(self, step: int, wanted: PyTree) -> PyTree:
        """Returns arrays of a checkpoint, placed as those that are wanted."""
        args = ocp.args.Composite(population=ocp.args.StandardRestore(wanted))
        return self._manager.restore(step, args=args)["population"]

    def _stale(self, step: int, meta: dict, template: PyTree) -> set[str]:
        """Returns the kinds of statistics that an older version wrote; warns of each.

        Raises:
            CheckpointError: If a newer version wrote one.
        """
        stale = set()
        for name, now in versions(template).items():
            was = meta.get("versions", {}).get(name, 0)
            message = f"{self._path / str(step)}: {name} is of version {was}"
            if was > now:
                raise CheckpointError(f"{message}, and this ppo_jax knows {now}")
            if was < now:
                warnings.warn(
                    f"{message}, and this is {now}: its statistics begin anew",
                    stacklevel=5,  # The caller of `restore` or `read`.
                )
                stale.add(name)
        return stale

    def _meta(self, step: int) -> dict:
        args = ocp.args.Composite(meta=ocp.args.JsonRestore())
        return self._manager.restore(step, args=args)["meta"]

    def rewind(self, update: int) -> None:
        """Sets aside checkpoints newer than an update; removes unfinished saves."""

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

    def _rate(self) -> None:
        """Reads the fitness of every checkpoint; a damaged one is never the best."""
        self._fitness.clear()
        for step in self._manager.all_steps():
            try:
                self._fitness[step] = self._meta(step)["fitness"]
            except Exception as error:
                self._require_damaged(step, error)
                if self._is_outdated():
                    return self._rate()

    def _is_outdated(self) -> bool:
        """Looks again; returns whether a run has saved or deleted others meanwhile."""
        before = sorted(self._manager.all_steps())
        self._manager.reload()
        return sorted(self._manager.all_steps()) != before

    def _require_damaged(self, step: int, error: Exception) -> None:
        """Raises an `OSError` for a checkpoint that may be read later, by its error."""
        if damage.passes(error):
            place, cause = self._path / str(step), damage.cause(error)
            raise OSError(
                f"{place}: cannot be read now ({cause}); if it stays so, move it away, "
                "and another one stands in for it"
            ) from error

    def _unwritable(self, error: Exception) -> OSError:
        cause = damage.cause(error)
        return OSError(f"{self._path}: a checkpoint cannot be saved ({cause})")


class _Fitness(dict[int, float | None], keep.PreservationPolicy):
    """Fitness of every checkpoint, by its updates; the best checkpoint is kept."""

    def best(self, steps: Iterable[int]) -> int | None:
        scored = [(self[step], step) for step in steps if self.get(step) is not None]
        return max(scored)[1] if scored else None

    def should_preserve(self, checkpoints: Any, *, context: Any) -> list[bool]:
        best = self.best(info.step for info in checkpoints)
        return [info.step == best for info in checkpoints]

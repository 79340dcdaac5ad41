"""Checks whether a run may begin, or go on, in a directory."""

import os
from pathlib import Path

from ppo_jax.host.run_dir import batched, ending, experiment, files, script
from ppo_jax.host.run_dir.experiment import UNSAVED, ExperimentError
from ppo_jax.host.run_dir.names import CHECKPOINTS, LINEAGE, LOG

SAVED = {"finished", "stopped", "interrupted"}
"""Endings of a run that follow a save."""
REPLACED = (
    *(script.KEPT, script.IMPORTED, experiment.CONFIG),
    *(LOG, LINEAGE, "events.out.tfevents.*"),
)
"""Names and patterns of files that a run replaces or deletes."""
AGAIN = (
    "it stopped before what it begins with was saved; begin it again, with "
    "--warm-start (in Python begin) and without --resume"
)


def require_new(run_dir: Path) -> None:
    """Checks that a directory holds no run that could be resumed.

    Raises:
        ExperimentError: If it holds one, if only the log of a run is left there, or if
            files that are of no run would be replaced.
    """
    places = (run_dir, *run_dir.glob(f"{batched.BATCHES}/*"))
    if any(map(is_saved, places)) or batched.has_results(run_dir):
        raise ExperimentError(
            f"{run_dir}: holds a run already; give --resume to go on with it, in "
            "Python resume=True, or another directory"
        )
    if not any((run_dir / x).exists() for x in (experiment.OVERRIDES, UNSAVED)):
        found = sorted(x.name for each in REPLACED for x in run_dir.glob(each))
        if found:
            said = f"holds {', '.join(found)}, which a run would replace"
            raise ExperimentError(f"{run_dir}: {said}; give another directory")
    require_whole(run_dir)


def require_begun(run_dir: Path) -> None:
    """Checks that a resumed run has saved the state that it begins with.

    Raises:
        ExperimentError: If it has not; the message says how to begin it again.
    """
    if never_began(run_dir):
        raise ExperimentError(f"{run_dir}: {AGAIN}")


def require_whole(run_dir: Path) -> None:
    """Checks that a run which was saved still has its checkpoints.

    Without them the run and its log would begin from scratch. Only a run that was
    killed before its first checkpoint was whole may do so: as each save waits for the
    one before, its log has at most the phases of two saves.

    Raises:
        ExperimentError: If they are gone, or their folder is a link that leads nowhere.
    """
    place = run_dir / CHECKPOINTS
    if place.is_symlink() and not place.exists():
        raise ExperimentError(f"{place}: leads to {os.readlink(place)}, which is gone")
    if is_saved(run_dir) or (run_dir / UNSAVED).exists():
        return
    rows = files.rows(run_dir / LOG)
    unsaved = 0 if ending.last(run_dir).state in SAVED else 2 * _phases(run_dir)
    if len(rows) > unsaved:
        raise ExperimentError(
            f"{run_dir}: the log reaches step {rows[-1]['step']:,}, but no checkpoint "
            f"is there; bring {CHECKPOINTS} back, or remove {LOG} to begin anew"
        )


def newest(run_dir: Path) -> int | None:
    """Returns the updates of a run's newest checkpoint, or None if it has none."""
    names = (path.name for path in run_dir.glob(f"{CHECKPOINTS}/*"))
    return max((int(name) for name in names if name.isdigit()), default=None)


def is_saved(run_dir: Path) -> bool:
    """Returns whether a run has a checkpoint."""
    return newest(run_dir) is not None


def never_began(run_dir: Path) -> bool:
    """Returns whether a run stopped before the state that it begins with was saved."""
    return (run_dir / UNSAVED).exists() and not is_saved(run_dir)


def _phases(run_dir: Path) -> int:
    """Returns the phases between checkpoints of a run, or of the sweep of a batch."""
    is_batch = run_dir.parent.name == batched.BATCHES
    home = run_dir.parent.parent if is_batch else run_dir
    if not (home / experiment.CONFIG).exists():
        return 0
    described = experiment.stored_description(home)
    return int(described.get("eval_phases", {}).get("value", 0))

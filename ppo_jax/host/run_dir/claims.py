"""Checks what may begin, go on or be written in the directory of a run."""

import os
from fnmatch import fnmatch
from pathlib import Path

from ppo_jax.errors import UserError
from ppo_jax.host.run_dir import batched, ending, experiment, files, script
from ppo_jax.host.run_dir.experiment import UNSAVED, ExperimentError
from ppo_jax.host.run_dir.names import (
    BACKTEST,
    BACKTEST_PAGE,
    CHECKPOINTS,
    EQUITY,
    FORMER,
    LINEAGE,
    LOG,
    MEANINGS,
    NONE_YET,
    REPORT,
    RESULTS,
    SCHEDULE,
)

REPLACED = (
    *(script.KEPT, script.IMPORTED, script.MADE),
    *(experiment.CONFIG, experiment.OVERRIDES, UNSAVED, ending.KEPT),
    *(SCHEDULE, *batched.OF_BATCHES, FORMER, files.REPLACING),
    *(LOG, MEANINGS, LINEAGE, "events.out.tfevents.*"),
    *(REPORT, RESULTS, BACKTEST, EQUITY, BACKTEST_PAGE),
)
"""Files that runs, or many runs together, write over or delete."""
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
    if not experiment.is_kept(run_dir):
        found = sorted(x.name for each in REPLACED for x in run_dir.glob(each))
        if found:
            message = f"holds {', '.join(found)}, which a run would replace"
            raise ExperimentError(f"{run_dir}: {message}; give another directory")
    require_whole(run_dir)


def is_own(name: str) -> bool:
    """Returns whether runs, or many runs together, write a file of this name.

    >>> is_own("config.json"), is_own("figures.json")
    (True, False)
    """
    return any(fnmatch(name, each) for each in REPLACED)


def require_output(path: Path) -> None:
    """Checks at once that a command may write a file later, and can.

    Raises:
        UserError: If it is a file of the run in that directory, other than its page,
            or cannot be written.
    """
    own = path.name != REPORT and is_own(path.name)
    if own and experiment.is_kept(path.parent):
        raise UserError(f"{path}: is of the run itself; give another name")
    files.require_writable(path)


def require_begun(run_dir: Path) -> None:
    """Checks that a resumed run has saved the state that it begins with.

    Raises:
        ExperimentError: If it has not; the message says how to begin it again.
    """
    if never_began(run_dir):
        raise ExperimentError(f"{run_dir}: {AGAIN}")


def require_whole(run_dir: Path) -> None:
    """Checks that a run which was saved still has its checkpoints.

    Without them it would begin anew, and its log with it. A run whose folder of
    checkpoints says that none is whole yet may do so.

    Raises:
        ExperimentError: If they are gone, or their folder is a link that leads nowhere.
    """
    place = run_dir / CHECKPOINTS
    if place.is_symlink() and not place.exists():
        raise ExperimentError(f"{place}: leads to {os.readlink(place)}, which is gone")
    unsaved = any((run_dir / name).exists() for name in (UNSAVED, NONE_YET))
    if unsaved or is_saved(run_dir):
        return
    if rows := files.rows(run_dir / LOG):
        raise ExperimentError(
            f"{run_dir}: the log reaches step {rows[-1]['step']:,}, but no checkpoint "
            f"is there; bring {CHECKPOINTS} back, or remove {LOG} to begin anew"
        )


def note_unsaved(run_dir: Path) -> None:
    """Writes beside its checkpoints that a run has none yet, unless it has.

    Raises:
        OSError: If the disk does not take it.
    """
    if not is_saved(run_dir):
        (run_dir / CHECKPOINTS).mkdir(exist_ok=True)
        files.write(run_dir / NONE_YET, "No checkpoint was saved yet.\n")


def note_saved(run_dir: Path) -> None:
    """Removes that file once a run has a checkpoint.

    Raises:
        OSError: If the disk does not take it.
    """
    if is_saved(run_dir):
        (run_dir / NONE_YET).unlink(missing_ok=True)


def newest(run_dir: Path) -> int | None:
    """Returns the updates of a run's newest checkpoint, or None if it has none."""
    paths = run_dir.glob(f"{CHECKPOINTS}/*")
    names = (path.name for path in paths if path.name.isdecimal() and path.is_dir())
    return max((int(x) for x in names if x == str(int(x))), default=None)


def is_saved(run_dir: Path) -> bool:
    """Returns whether a run has a checkpoint."""
    return newest(run_dir) is not None


def never_began(run_dir: Path) -> bool:
    """Returns whether a run stopped before the state that it begins with was saved."""
    return (run_dir / UNSAVED).exists() and not is_saved(run_dir)

"""Finds the runs below a folder."""

import os
from collections.abc import Iterator
from pathlib import Path

from ppo_jax.errors import UserError
from ppo_jax.host.run_dir.experiment import CONFIG
from ppo_jax.host.run_dir.names import CHECKPOINTS, FORMER, LOG
from ppo_jax.sweeps import plan

MARKS = {CONFIG, LOG, plan.KEPT}
"""Names of files, any of which marks a folder as a run, or as a sweep of runs."""
WITHOUT_RUNS = {CHECKPOINTS, "imported", FORMER}
"""Names of folders of a run that hold no runs."""


def find(root: Path) -> Iterator[Path]:
    """Yields the runs below a folder, itself included; links are not followed.

    Raises:
        UserError: If there is no such folder, or it cannot be read.
    """
    for folder, folders, names in os.walk(root, onerror=_refuse_only(root)):
        ours: set[str] = set()
        if MARKS & set(names):
            yield Path(folder)
            ours = WITHOUT_RUNS
        folders[:] = sorted(
            name
            for name in folders
            if name not in ours and not name.startswith((".", "__"))
        )


def size(run_dir: Path) -> int:
    """Returns the bytes of all files of a run, and of those below it."""
    total = 0
    for folder, _, names in os.walk(run_dir):
        for name in names:
            try:
                total += os.lstat(os.path.join(folder, name)).st_size
            except OSError:  # The file was deleted meanwhile.
                continue
    return total


def _refuse_only(root: Path):
    """Returns a handler of unreadable folders, which raises for the root alone."""

    def refuse(error: OSError) -> None:
        if error.filename == os.fspath(root):
            missing = isinstance(error, FileNotFoundError | NotADirectoryError)
            message = "no run to be found there" if missing else f"{error.strerror}"
            raise UserError(f"{root}: {message}") from error

    return refuse

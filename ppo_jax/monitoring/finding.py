"""Which runs there are below a folder."""

import os
from collections.abc import Iterator
from pathlib import Path

from ppo_jax.errors import UserError
from ppo_jax.host.run_dir.experiment import CONFIG
from ppo_jax.sweeps import plan

LOGGED = "metrics.jsonl"
MARKS = {CONFIG, LOGGED, plan.KEPT}
"""A folder with any of these is a run, or a sweep of them."""
WITHOUT_RUNS = {"checkpoints", "imported"}


def find(root: Path) -> Iterator[Path]:
    """The runs below a folder, itself included; links to folders are not followed.

    Raises:
        UserError: If there is no such folder, or it cannot be read.
    """
    for folder, folders, names in os.walk(root, onerror=_refuse_only(root)):
        if MARKS & set(names):
            yield Path(folder)
        folders[:] = sorted(
            name
            for name in folders
            if name not in WITHOUT_RUNS and not name.startswith((".", "__"))
        )


def size(run_dir: Path) -> int:
    """Bytes of all files of a run, and of those below it."""
    total = 0
    for folder, _, names in os.walk(run_dir):
        for name in names:
            try:
                total += os.lstat(os.path.join(folder, name)).st_size
            except OSError:  # It is deleted just now.
                continue
    return total


def _refuse_only(root: Path):
    """What is done with folders that cannot be read: others than the root are empty."""

    def refuse(error: OSError) -> None:
        if error.filename == os.fspath(root):
            missing = isinstance(error, FileNotFoundError | NotADirectoryError)
            said = "no run to be found there" if missing else f"{error.strerror}"
            raise UserError(f"{root}: {said}") from error

    return refuse

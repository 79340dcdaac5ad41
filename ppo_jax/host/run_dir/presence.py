"""Locks that show whether a process is at work in a run directory.

The system releases a lock when its process ends, in whatever way, so that no crashed
process looks alive. Over a network a lock is seen as far as the file system passes
locks on. If the file system has no locks, a run does without.
"""

import contextlib
import errno
import os
import platform
import time
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any

from ppo_jax.errors import UserError
from ppo_jax.host.process import distributed
from ppo_jax.host.run_dir import batched, experiment, files
from ppo_jax.host.run_dir.script import ExperimentError

try:
    import fcntl
except ModuleNotFoundError:  # On Windows.
    fcntl: Any = None

LOCK = ".lock"
NAMELESS = "a machine without a name"
PATIENCE = 0.5
"""Seconds to wait for the lock, which `is_alive` elsewhere holds for a moment."""
WITHOUT_LOCKS = {errno.ENOLCK, errno.ENOSYS, errno.ENOTSUP}
"""Errors of file systems that have no locks."""


@contextlib.contextmanager
def alone(run_dir: Path) -> Iterator[None]:
    """Keeps other jobs out of a directory in which agents are trained; see `held`.

    Raises:
        ExperimentError: If checkpoints could not be found again there.
    """
    with files.of_run(run_dir):
        files.require_plain(run_dir)
    with held(run_dir):
        yield


@contextlib.contextmanager
def held(run_dir: Path) -> Iterator[None]:
    """Keeps other jobs out of a directory, which is made if need be.

    Raises:
        UserError: If the system knows no such locks.
        ExperimentError: If another job is there, or the directory cannot be written.
        JobError: In the other processes of a job, if the first one cannot go on.
    """
    if fcntl is None:
        raise UserError("runs need Linux or macOS; on Windows, a Linux within it (WSL)")
    with contextlib.ExitStack() as held:
        distributed.first_only(lambda: held.enter_context(_locked(run_dir)))
        yield


def is_alive(run_dir: Path) -> bool:
    """Returns whether a process is at work in a directory.

    >>> import tempfile
    >>> run_dir = Path(tempfile.mkdtemp())
    >>> with alone(run_dir):
    ...     is_alive(run_dir)
    True
    >>> is_alive(run_dir)
    False
    """
    if fcntl is None:
        return False
    try:
        file = os.open(run_dir / LOCK, os.O_RDONLY | os.O_NONBLOCK)
    except OSError:
        return False
    try:
        fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except OSError as error:
        return error.errno not in WITHOUT_LOCKS
    finally:
        os.close(file)
    return False


@contextlib.contextmanager
def _locked(run_dir: Path) -> Iterator[None]:
    with files.of_run(run_dir):
        run_dir.mkdir(parents=True, exist_ok=True)
        file = (run_dir / LOCK).open("a+", errors="replace")
    # A process that this one forks may outlive it, and must not hold its lock.
    os.register_at_fork(after_in_child=file.close)
    with file:
        if not _acquired(file):
            raise ExperimentError(
                f"{run_dir}: a run is under way there{_by(file)}; wait until it has "
                "ended, or give another directory"
            )
        if not (_is_ours(file) or _is_of_run(run_dir)):
            raise ExperimentError(
                f"{run_dir}: holds {LOCK}, which a run would replace; give another "
                "directory"
            )
        file.truncate(0)
        with files.naming(run_dir / LOCK):
            who = f"{os.getpid()} {platform.node() or NAMELESS}"
            os.write(file.fileno(), who.encode())  # What is left is not tried again.
        with files.of_run(run_dir):
            files.complete(run_dir)
        yield


def _acquired(file: IO[str]) -> bool:
    """Takes the lock, unless another process keeps it; returns whether it did.

    Where there are no locks, it returns True.
    """
    end = time.monotonic() + PATIENCE
    while True:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() > end:
                return False
            time.sleep(0.01)
        except OSError as error:
            if error.errno in WITHOUT_LOCKS:
                return True
            raise
        else:
            return True


def _is_ours(file: IO[str]) -> bool:
    """Returns whether a lock is empty, or has been written by a run."""
    process, machine = _holder(file)
    return not process or (process.isdecimal() and bool(machine))


def _is_of_run(run_dir: Path) -> bool:
    """Returns whether a directory is that of a run, or of a batch of many.

    A power cut may leave anything in its lock.
    """
    is_batch = run_dir.parent.name == batched.BATCHES
    return experiment.is_kept(run_dir.parent.parent if is_batch else run_dir)


def _by(file: IO[str]) -> str:
    """Returns the holder of the lock, as written into it, or an empty text."""
    process, machine = _holder(file)
    return f", by process {process} on {machine}" if machine else ""


def _holder(file: IO[str]) -> tuple[str, str]:
    file.seek(0)
    process, _, machine = file.read(200).partition(" ")
    return process, machine

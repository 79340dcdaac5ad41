"""A job: its processes, started and ended together.

All of this is JAX's own runtime. With one process there is nothing to agree on, and
every function here does its work at once.
"""

import contextlib
import os
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, TypeVar

import jax
import numpy as np
from jax.experimental import multihost_utils

from ppo_jax.errors import RunError, UserError, mendable
from ppo_jax.host.process.exits import Exit

T = TypeVar("T")

CONNECT_SECONDS = 60
HEARTBEAT_SECONDS = 30
"""Seconds after which a silent process counts as dead, and its job ends."""

LOST = (jax.errors.JaxRuntimeError, ValueError)
"""Errors that JAX raises when it waits for a process that has ended."""


class JobError(UserError):
    """The processes of a job did not come together, or one of them has ended."""


def join(
    coordinator: str | None, num_processes: int | None, process_id: int | None
) -> None:
    """Joins the processes of a job.

    Arguments that are None are found in the cluster's environment.

    Args:
        coordinator: Host and port at which all processes find process 0.
        num_processes: Number of processes.
        process_id: Index of this process, from 0.

    Raises:
        JobError: If the arguments cannot be found, or the processes do not come
            together in time.
    """
    jax.config.update("jax_enable_preemption_service", False)  # That takes SIGTERM.
    try:
        jax.distributed.initialize(
            coordinator,
            num_processes,
            process_id,
            initialization_timeout=CONNECT_SECONDS,
            heartbeat_timeout_seconds=HEARTBEAT_SECONDS,
            shutdown_timeout_seconds=HEARTBEAT_SECONDS,
        )
    except (RuntimeError, ValueError) as error:
        raise JobError(str(error).splitlines()[0]) from error


def is_first() -> bool:
    """Returns whether this is the process that writes logs and prints."""
    return jax.process_index() == 0


def first_only(action: Callable[[], T]) -> T | None:
    """Runs an action in process 0 alone; then all processes go on, or none.

    Returns:
        The result of the action in process 0, None in the others.

    Raises:
        JobError: In the other processes, if the action failed.
        Exception: In process 0, the error of the action.
    """
    result = failure = None
    if is_first():
        try:
            result = action()
        except Exception as error:
            failure = error
    failed = agreed(np.bool_(failure is not None))
    if failure is not None:
        raise failure
    if failed:
        raise JobError("process 0 cannot go on, and says why")
    return result


def agreed(value: Any) -> np.ndarray:
    """Returns process 0's value in all processes: rounding may differ by machine."""
    return np.asarray(multihost_utils.broadcast_one_to_all(value))


def any_of(asked: bool) -> bool:
    """Returns whether `asked` is true in any process."""
    return bool(np.any(multihost_utils.process_allgather(np.bool_(asked))))


@contextlib.contextmanager
def folder(run_dir: Path) -> Iterator[Path]:
    """Yields a folder that this process may write to.

    In process 0 it is the run's directory, in others a temporary folder that is
    deleted.
    """
    if is_first():
        yield run_dir
    else:
        with tempfile.TemporaryDirectory() as nowhere:
            yield Path(nowhere)


@contextlib.contextmanager
def together(hint: str) -> Iterator[None]:
    """Ends one of several processes at once on an error that it alone may meet.

    Disks fill up, and other processes end. Closing everything in good order would take
    barriers that the other processes never reach. They notice the end of this process,
    and end too.

    Args:
        hint: Text on how to continue the run, printed at the end.

    Raises:
        RunError: If the disk takes nothing more, and there is only one process.
    """
    try:
        yield
    except (OSError, *LOST) as error:
        if mendable(error):  # All processes meet this error.
            raise
        if jax.process_count() == 1:
            if isinstance(error, OSError):
                raise RunError(f"{error}\n{hint}") from error
            raise
        cause = error.__cause__ or error
        if isinstance(cause, LOST):
            message = str(cause).splitlines()[0]
            _leave(
                Exit.LOST, f"another process of this job has ended ({message})", hint
            )
        _leave(3, str(error), hint)


def _leave(status: int, message: str, hint: str) -> None:
    print(f"error: {message}\n{hint}", file=sys.stderr, flush=True)
    os._exit(status)

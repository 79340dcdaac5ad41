"""A job: its processes, started and ended together.

All of it is JAX's own runtime. With one process there is nothing to agree on, and every
function here does what its name says at once.
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
"""After which a silent process counts as dead, and its job ends."""

LOST = (jax.errors.JaxRuntimeError, ValueError)
"""What JAX raises where it waits for a process that has ended."""


class JobError(UserError):
    """The processes of a job did not come together, or one of them has ended."""


def join(
    coordinator: str | None, num_processes: int | None, process_id: int | None
) -> None:
    """Joins the processes of a job; what is None is found in the cluster's environment.

    Args:
        coordinator: Host and port at which process 0 is found by all.
        num_processes: How many there are.
        process_id: Which one this is, from 0.

    Raises:
        JobError: If they cannot be found, or do not come together in time.
    """
    jax.config.update("jax_enable_preemption_service", False)  # It takes SIGTERM.
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
    """Whether this is the process that writes logs and talks."""
    return jax.process_index() == 0


def first_only(action: Callable[[], T]) -> T | None:
    """Does in process 0 what is done once; then all go on, or none.

    Returns:
        What came of it, in process 0.

    Raises:
        JobError: In the others, if it failed there.
        Exception: In process 0, whatever it raised.
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
    """What process 0 says, in all of them: rounding may differ between machines."""
    return np.asarray(multihost_utils.broadcast_one_to_all(value))


def any_of(asked: bool) -> bool:
    """Whether any process says so."""
    return bool(np.any(multihost_utils.process_allgather(np.bool_(asked))))


@contextlib.contextmanager
def folder(run_dir: Path) -> Iterator[Path]:
    """Where this process may write: process 0 in the run's directory, others nowhere.

    What they write goes to a folder that is deleted.
    """
    if is_first():
        yield run_dir
    else:
        with tempfile.TemporaryDirectory() as nowhere:
            yield Path(nowhere)


@contextlib.contextmanager
def together(hint: str) -> Iterator[None]:
    """Among several processes, what one of them alone may meet ends it at once.

    Disks fill up, and other processes end. To close everything in good order would take
    barriers to which the others never come; so they hear of it, and end too.

    Args:
        hint: How to go on, said at the end.

    Raises:
        RunError: If the disk takes nothing more; from a single process.
    """
    try:
        yield
    except (OSError, *LOST) as error:
        if mendable(error):  # All of them meet it.
            raise
        if jax.process_count() == 1:
            if isinstance(error, OSError):
                raise RunError(f"{error}\n{hint}") from error
            raise
        cause = error.__cause__ or error
        if isinstance(cause, LOST):
            said = str(cause).splitlines()[0]
            _leave(Exit.LOST, f"another process of this job has ended ({said})", hint)
        _leave(3, str(error), hint)


def _leave(status: int, message: str, hint: str) -> None:
    print(f"error: {message}\n{hint}", file=sys.stderr, flush=True)
    os._exit(status)

"""What a process says as it ends."""

from enum import IntEnum


class Exit(IntEnum):
    """Exit statuses; 1 is that of a check that failed, or a fault of this package."""

    FINISHED = 0
    STOPPED = 0
    """A bound that the experiment gives was reached."""
    WRONG = 2
    """The experiment, an option or the run directory is wrong."""
    FAILED = 3
    """Nothing finite was learned for long, or disk or device took nothing more."""
    STALLED = 4
    """Nothing came back for too long."""
    LOST = 5
    """Another process of the job has ended."""
    INTERRUPTED = 130
    UNREAD = 141
    """Whoever read what it prints has closed the pipe; training goes on."""

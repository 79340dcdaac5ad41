"""Exit statuses of processes."""

from enum import IntEnum


class Exit(IntEnum):
    """Exit statuses; 1 is for a check that failed, or for a fault of this package."""

    FINISHED = 0
    STOPPED = 0
    """A bound that the experiment gives was reached."""
    WRONG = 2
    """The experiment, an option or the run directory is wrong."""
    FAILED = 3
    """No step was finite for too long, or a disk or a device failed."""
    STALLED = 4
    """No computation came back for too long."""
    LOST = 5
    """Another process of the job has ended."""
    INTERRUPTED = 130
    UNREAD = 141
    """The reader of the output has closed the pipe; training goes on."""

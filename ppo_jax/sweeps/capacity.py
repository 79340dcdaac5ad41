"""Memory that is available to programs."""

import os
from collections.abc import Iterator
from pathlib import Path, PurePosixPath

import jax

from ppo_jax.errors import UserError


def of_device() -> int:
    """Returns the bytes of a device; of a CPU, those that this process may use.

    Raises:
        UserError: If a GPU or a TPU does not report how many it has.
    """
    device = jax.devices()[0]
    if device.platform == "cpu":
        return of_process()
    known = device.memory_stats() or {}
    if "bytes_limit" not in known:
        raise UserError(
            f"{device.device_kind} does not say how much memory it has: give a sweep's "
            "--memory, or leave XLA_PYTHON_CLIENT_ALLOCATOR as it is"
        )
    return known["bytes_limit"]


def of_process(root: Path = Path("/")) -> int:
    """Returns the bytes of the machine, or the limit of a container or a job if less.

    Args:
        root: Root of the files by which Linux describes control groups.
    """
    whole = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    return min([whole, *_limits(root)])


def _limits(root: Path) -> Iterator[int]:
    """Yields the limits of this process's control groups, and of those above them.

    In a container, its own group is at the top, whatever path it has outside.
    """
    for line in _text(root / "proc/self/cgroup").splitlines():
        _, controllers, path = line.split(":", 2)
        if controllers and "memory" not in controllers.split(","):
            continue
        name = "memory.limit_in_bytes" if controllers else "memory.max"
        group = PurePosixPath(path).relative_to("/")
        for above in (group, *group.parents):
            text = _text(root / "sys/fs/cgroup" / controllers / above / name)
            if text.strip().isdigit():  # Without a limit, the file has a word.
                yield int(text)


def _text(path: Path) -> str:
    """Returns the text of a file; empty if it cannot be read."""
    try:
        return path.read_text()
    except OSError:
        return ""

"""Errors of files that cannot be read, and whether they mean damage."""

import errno
import re
import sys
import textwrap
from typing import Any

DAMAGED = [getattr(errno, name, errno.EINVAL) for name in ("EBADMSG", "EUCLEAN")]
LASTING = {errno.ENOENT, errno.ENOTDIR, errno.EISDIR, errno.EINVAL, *DAMAGED}
"""Errors of files that are missing, damaged or no longer what they were."""
SYSTEM = re.compile(r"\[OS error (\d+)")
"""Pattern of such a number in tensorstore's messages."""
ECHOES = (
    "Event loop is closed",
    "Encountered error while reading array",
    "coroutine 'Store.",
)
"""Beginnings of errors that orbax's threads print, beside the exception it raises."""


def passes(error: Exception) -> bool:
    """Returns whether a file that could not be read may be read later, by its error.

    >>> passes(TimeoutError(errno.ETIMEDOUT, "")), passes(FileNotFoundError(2, ""))
    (True, False)
    >>> passes(ValueError('Error reading "x": [OS error 5: EIO Input/output error]'))
    True
    >>> passes(OSError("No metadata")), passes(ValueError("Checksum is wrong"))
    (False, False)
    """
    told = SYSTEM.search(str(error))
    number = int(told[1]) if told else getattr(error, "errno", None)
    return isinstance(error, MemoryError) or number not in {None, *LASTING}


def cause(error: Exception) -> str:
    """Returns the type of an error, and the first line of its message, cut short.

    >>> cause(ValueError("word " * 99))[-11:]
    'word word …'
    """
    line = next(iter(str(error).splitlines()), "")
    return textwrap.shorten(f"{type(error).__name__}: {line}", 200, placeholder=" …")


def drop_echoes(
    unraisable: Any, report: Any = sys.unraisablehook, echoes: tuple = ECHOES
) -> None:
    """Reports an error that nobody can catch, unless it is one of orbax's `ECHOES`.

    The defaults bind all that it needs, as modules are empty when a process ends.
    """
    if not str(unraisable.exc_value).startswith(echoes):
        report(unraisable)

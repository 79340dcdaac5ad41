"""Errors that whoever gave a command can mend, and the lines of theirs that led there.

A file is the user's own if it is not installed, nor a part of this package.
"""

import functools
import linecache
import os
import re
import sysconfig
import traceback
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
STANDARD = Path(sysconfig.get_path("stdlib")).resolve()
INSTALLED = {"site-packages", "dist-packages"}
LINE = re.compile(r'^  File "(.+?)", line (\d+), in (\S+)$', re.MULTILINE)
"""A line of a traceback that became text, as in errors of callbacks to the host."""


class UserError(Exception):
    """Something that whoever gave the command can mend; the message says what."""


class RunError(Exception):
    """What ended a run from outside; the message says how to go on."""


class Missing(UserError, NotImplementedError):
    """A part of an experiment lacks what all of its kind have."""


class Misfit(UserError, ValueError):
    """A part of an experiment gives what does not fit."""


def mendable(error: BaseException) -> str | None:
    """What whoever gave the command can mend, in words; None: nothing."""
    lines = own_lines(error)
    if isinstance(error, UserError):
        return f"{error}{lines}"
    return brief(error) + lines if lines else None


def missing(part: Any, name: str) -> Missing:
    """The error of a method or a property that its class has to bring along.

    >>> class Env:
    ...     def reset(self):
    ...         raise missing(self, "reset")
    >>> class Walk(Env): ...
    >>> str(missing(Walk(), "reset"))
    'Walk.reset: missing; every Env needs one of its own'
    """
    above = reversed(type(part).__mro__)
    kind = next(cls for cls in above if name in vars(cls))
    return Missing(
        f"{type(part).__name__}.{name}: missing; every {kind.__name__} needs one of "
        "its own"
    )


def require_shape(name: str, given: Any, shape: tuple[int, ...], meaning: str) -> None:
    """Checks what a part of an experiment gave.

    Raises:
        Misfit: If it is no array of this shape.

    >>> import numpy as np
    >>> require_shape("Mine.loss", np.zeros(3, np.float32), (4,), "one per example")
    Traceback (most recent call last):
    ppo_jax.errors.Misfit: Mine.loss: expected the shape (4,), one per example, got \
float32[3]
    """
    if getattr(given, "shape", None) != shape:
        raise Misfit(
            f"{name}: expected the shape {shape}, {meaning}, got {kind(given)}"
        )


def kind(value: Any) -> str:
    """What a value is, in a word.

    >>> import numpy as np
    >>> kind(np.zeros((2, 3))), kind((1, 2)), kind(None)
    ('float64[2, 3]', 'a tuple of 2', 'None')
    """
    if hasattr(value, "shape") and hasattr(value, "dtype"):
        return f"{value.dtype}{list(value.shape)}"
    if isinstance(value, tuple | list):
        return f"a {type(value).__name__} of {len(value)}"
    return "None" if value is None else f"a {type(value).__name__}"


def is_own(file: str | None) -> bool:
    """Whether a file is the user's own.

    >>> is_own(__file__), is_own(re.__file__), is_own("<string>"), is_own("/home/x.py")
    (False, False, False, True)
    """
    if file is None or file.startswith("<"):  # No file, but a string for example.
        return False
    return _is_own_folder(os.path.dirname(_followed(file)))


@functools.cache
def _is_own_folder(name: str) -> bool:
    """Whether the files of a folder are the user's own."""
    path = Path(name).resolve()
    installed = path.is_relative_to(STANDARD) or INSTALLED & set(path.parts)
    return not (installed or path.is_relative_to(HERE))


def _followed(file: str) -> str:
    """The file that a link leads to."""
    return os.path.realpath(file) if os.path.islink(file) else file


def is_ours(file: str | None) -> bool:
    """Whether a file is a part of this package."""
    return file is not None and Path(file).resolve().is_relative_to(HERE)


def own_lines(error: BaseException) -> str:
    """The user's own lines of an error's traceback, as Python shows them.

    Functions have the names of their classes before them. No line: no text.
    """
    lines = shown([*_passed(error), *_told(error)])
    if isinstance(error, SyntaxError):  # Of the line that it is in, nothing was run.
        lines += "\n" + "".join(traceback.format_exception_only(error)[:-1]).rstrip()
    return lines


def shown(passed: Iterable[tuple[str, int, str]]) -> str:
    """The user's own of files, lines and functions, as Python shows them."""
    return "".join(
        f'\n  File "{file}", line {number}, in {name}'
        f"\n    {linecache.getline(file, number).strip()}"
        for file, number, name in passed
        if is_own(file)
    )


def brief(error: BaseException) -> str:
    """What is wrong, in the words of its author; of JAX's many, the first line."""
    name, text = type(error).__name__, str(error)
    if is_of_jax(error) and text:
        first, *_, last = text.splitlines() * 2
        return last if _told(error) else f"{name}: {first}"
    return f"{name}: {text}" if text else name


def is_of_jax(error: BaseException) -> bool:
    """Whether JAX raised an error that is its own."""
    return type(error).__module__.split(".")[0] in ("jax", "jaxlib")


def _passed(error: BaseException) -> Iterator[tuple[str, int, str]]:
    """Files, lines and functions of a traceback, the innermost last."""
    for frame, number in traceback.walk_tb(error.__traceback__):
        yield frame.f_code.co_filename, number, frame.f_code.co_qualname


def _told(error: BaseException) -> list[tuple[str, int, str]]:
    """Those of a traceback that JAX made a part of its message."""
    found = LINE.findall(str(error)) if is_of_jax(error) else []
    return [(file, int(number), name) for file, number, name in found]

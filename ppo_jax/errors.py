"""Errors that the user can fix, and the user's own lines that led to them.

A file is the user's own if it is neither installed nor a part of this package.
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
    """An error that the user can fix; the message says what is wrong."""


class RunError(Exception):
    """An error from outside that ended a run; the message says how to go on."""


class Missing(UserError, NotImplementedError):
    """An error for a part of an experiment that lacks a method of its kind."""


class Misfit(UserError, ValueError):
    """An error for a part of an experiment whose result or argument does not fit."""


def mendable(error: BaseException) -> str | None:
    """Returns the message for an error that the user can fix, or None."""
    lines = own_lines(error)
    if isinstance(error, UserError):
        return f"{error}{lines}"
    return brief(error) + lines if lines else None


def missing(part: Any, name: str) -> Missing:
    """Returns the error for a method or property that a class has to define.

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


def require_shape(
    name: str, given: Any, shape: tuple[int, ...], meaning: str, kinds: str = ""
) -> None:
    """Checks the shape of an array that a part of an experiment returned.

    Args:
        name: The part and its method.
        given: What it returned.
        shape: The shape that is expected.
        meaning: What the array means, with its type if that has to be of some kind.
        kinds: NumPy's letters of the kinds of types; empty: any.

    Raises:
        Misfit: If it is no array of this shape, or not of such a type.

    >>> import numpy as np
    >>> require_shape("Mine.loss", np.zeros(3, np.float32), (4,), "one per example")
    Traceback (most recent call last):
    ppo_jax.errors.Misfit: Mine.loss: expected the shape (4,), one per example, got \
float32[3]
    """
    fits = getattr(given, "shape", None) == shape
    if not fits or (kinds and given.dtype.kind not in kinds):
        raise Misfit(
            f"{name}: expected the shape {shape}, {meaning}, got {kind(given)}"
        )


def require_alike(**arrays: Any) -> None:
    """Checks that arguments are arrays of one shape, that of the first.

    Raises:
        Misfit: If one is not; the message names it.

    >>> import numpy as np
    >>> require_alike(r_t=np.zeros(3), discount_t=0.99)
    Traceback (most recent call last):
    ppo_jax.errors.Misfit: discount_t: expected the shape (3,), that of r_t, got a float
    """
    (first, like), *others = arrays.items()
    if not hasattr(like, "shape"):
        raise Misfit(f"{first}: expected an array, got {kind(like)}")
    for name, given in others:
        require_shape(name, given, like.shape, f"that of {first}")


def require_scalar(**given: Any) -> None:
    """Checks that an argument is a single number, or an array that is one.

    Raises:
        Misfit: If it is not; the message names it.

    >>> require_scalar(clip_eps=[0.1, 0.2])
    Traceback (most recent call last):
    ppo_jax.errors.Misfit: clip_eps: expected a number, got a list of 2
    """
    for name, value in given.items():
        if not (isinstance(value, int | float) or getattr(value, "shape", None) == ()):
            raise Misfit(f"{name}: expected a number, got {kind(value)}")


def pair(name: str, given: Any, expected: str, second: type = object) -> Any:
    """Returns the pair that a part of an experiment returned.

    Raises:
        Misfit: If it is no tuple of two, whose second is of this type.

    >>> pair("Mine", None, "(loss, metrics)")
    Traceback (most recent call last):
    ppo_jax.errors.Misfit: Mine: expected (loss, metrics), got None
    """
    if isinstance(given, tuple) and len(given) == 2 and isinstance(given[1], second):
        return given
    raise Misfit(f"{name}: expected {expected}, got {kind(given)}")


def kind(value: Any) -> str:
    """Describes the type and shape of a value in few words.

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
    """Returns whether a file is the user's own.

    >>> is_own(__file__), is_own(re.__file__), is_own("<string>"), is_own("/home/x.py")
    (False, False, False, True)
    """
    if file is None or file.startswith("<"):  # No file, but a string for example.
        return False
    # Links in the standard library are of it: Debian's `sitecustomize` leads to /etc.
    here, there = os.path.dirname(file), os.path.dirname(_followed(file))
    return not _is_standard(here) and _is_own_folder(there)


@functools.cache
def _is_standard(folder: str) -> bool:
    """Returns whether a folder is of the standard library."""
    return Path(folder).resolve().is_relative_to(STANDARD)


@functools.cache
def _is_own_folder(name: str) -> bool:
    """Returns whether the files of a folder are the user's own."""
    path = Path(name).resolve()
    installed = _is_standard(name) or INSTALLED & set(path.parts)
    return not (installed or path.is_relative_to(HERE))


def _followed(file: str) -> str:
    """Returns the file that a link leads to."""
    return os.path.realpath(file) if os.path.islink(file) else file


def is_ours(file: str | None) -> bool:
    """Returns whether a file is a part of this package."""
    return file is not None and Path(file).resolve().is_relative_to(HERE)


def own_lines(error: BaseException) -> str:
    """Returns the user's own lines of an error's traceback, as Python shows them.

    Functions have the names of their classes before them. The text is empty if no line
    is the user's own.
    """
    lines = shown([*_passed(error), *_told(error)])
    if isinstance(error, SyntaxError):  # Its line never ran: no traceback has it.
        lines += "\n" + "".join(traceback.format_exception_only(error)[:-1]).rstrip()
    return lines


def shown(passed: Iterable[tuple[str, int, str]]) -> str:
    """Formats those lines that are in the user's own files, as Python shows them."""
    return "".join(
        f'\n  File "{file}", line {number}, in {name}'
        f"\n    {linecache.getline(file, number).strip()}"
        for file, number, name in passed
        if is_own(file)
    )


def brief(error: BaseException) -> str:
    """Returns the type and message of an error; of JAX's long messages, one line.

    Messages for the user say enough by themselves.
    """
    name, text = type(error).__name__, str(error)
    if isinstance(error, UserError):
        return text
    if is_of_jax(error) and text:
        first, *_, last = text.splitlines() * 2
        return last if _told(error) else f"{name}: {first}"
    return f"{name}: {text}" if text else name


def is_of_jax(error: BaseException) -> bool:
    """Returns whether an error is of a type that JAX defines."""
    return type(error).__module__.split(".")[0] in ("jax", "jaxlib")


def _passed(error: BaseException) -> Iterator[tuple[str, int, str]]:
    """Yields the files, lines and functions of a traceback, the innermost last."""
    for frame, number in traceback.walk_tb(error.__traceback__):
        yield frame.f_code.co_filename, number, frame.f_code.co_qualname


def _told(error: BaseException) -> list[tuple[str, int, str]]:
    """Returns files, lines and functions of a traceback within JAX's message."""
    found = LINE.findall(str(error)) if is_of_jax(error) else []
    return [(file, int(number), name) for file, number, name in found]

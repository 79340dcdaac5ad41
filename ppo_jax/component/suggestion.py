"""Messages about a name that is not known, and a class that was not called."""

import difflib
import textwrap
from collections.abc import Iterable, Mapping
from typing import Any

from ppo_jax.component.elsewhere import translated
from ppo_jax.component.names import descendants, nested

LIKE = 0.6
"""Least likeness, from 0 to 1, of names that may be mistaken for each other."""
WIDTH = 500
"""The most letters that names take in a message."""


def unknown(kind: str, name: str, known: Iterable[str]) -> str:
    """Returns the message that a name is unknown, with a close one or all names.

    A path is as close as any of its ends is: `learning_rate` to
    `optimizer.learning_rate`.

    Args:
        kind: The kind of thing that has the name.
        name: The name.
        known: The known names or paths.

    >>> unknown("number", "learning_rat", ["gamma", "optimizer.learning_rate"])
    "no number is called 'learning_rat'; the closest is 'optimizer.learning_rate'"
    >>> unknown("number", "beta", ["lambda", "gamma"])
    "no number is called 'beta'; there are: lambda, gamma"
    """
    message, known = f"no {kind} is called {name!r}", _outer_first(known)
    if close := closest(name, known):
        return f"{message}; the closest is {close!r}"
    names = textwrap.shorten(", ".join(known), WIDTH, placeholder=" …")
    return f"{message}; there are: {names}" if names else message


def unknown_field(name: str, fields: Mapping[str, Any]) -> str:
    """Returns the message that a field is unknown; of one of a part, how it is given.

    Args:
        name: The name.
        fields: The known fields, which may be components with further ones.
    """
    known = descendants(fields)
    close = closest(name, known)
    if close is None or "." not in close:
        return unknown("field", name, known)
    inner = f"{name} is a field of a part"
    message = inner if close == name else unknown("field", name, known)
    return f"{message}; give {nested(fields, close)}"


def of_absent(path: str, part: str) -> str:
    """Returns the message that a path leads into a part that is absent.

    >>> of_absent("optimizer.vgs.alpha", "optimizer.vgs")
    'optimizer.vgs.alpha: optimizer.vgs is absent, give it a value first'
    """
    return f"{path}: {part} is absent, give it a value first"


def closest(name: str, known: Iterable[str]) -> str | None:
    """Returns the name or path that a name may be mistaken for, if there is one.

    Of a name that other libraries have, it is what that is called here.

    >>> closest("--fold", ["--folds", "--seeds"]), closest("x", ["--folds"])
    ('--folds', None)
    >>> closest("--lr", ["--cluster", "--optimizer.learning-rate"])
    '--optimizer.learning-rate'
    """
    alike = {path: _likeness(name, path) for path in _outer_first(known)}
    close = max(alike, key=lambda path: alike[path], default=None)
    return close if close is not None and alike[close] >= LIKE else None


def uncalled(given: Any) -> str:
    """Returns a hint for a class given where an instance is expected; otherwise `""`.

    >>> uncalled(int), uncalled((3, int)), uncalled(3)
    ('; a class has to be called: int(…)', '; a class has to be called: int(…)', '')
    """
    each = given if isinstance(given, tuple | list) else [given]
    names = [value.__name__ for value in each if isinstance(value, type)]
    return f"; a class has to be called: {names[0]}(…)" if names else ""


def _outer_first(paths: Iterable[str]) -> list[str]:
    return sorted(paths, key=lambda path: path.count("."))


def _likeness(name: str, path: str) -> float:
    name, path = _plain(name), _plain(path)
    parts = path.split(".")
    ends = [".".join(parts[i:]) for i in range(len(parts))]
    outer, _, last = name.rpartition(".")
    here = translated(last)
    if here != last and here in ends and outer in path:
        return 1.0
    return max(difflib.SequenceMatcher(None, end, name).ratio() for end in ends)


def _plain(name: str) -> str:
    """Returns the name of a field or an option, such as `--no-wait`, as a field's."""
    name = name.removeprefix("--no-").removeprefix("--")
    return name.replace("-", "_").casefold()

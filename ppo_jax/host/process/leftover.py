"""Words of a command line that no option takes: fields, or mistakes."""

import dataclasses
import sys

from ppo_jax.component import suggestion
from ppo_jax.config import Config
from ppo_jax.errors import UserError


def require_first(argv: list[str] | None, fields: list[str]) -> None:
    """Refuses a line that begins with a field, whose value could be anything.

    Raises:
        UserError: If it does.
    """
    first = _words(argv)[0]
    if first.startswith("-") and first in fields[:1]:
        raise UserError(f"{first}: expected EXPERIMENT or RUN_DIR before its fields")


def require_named(argv: list[str] | None, fields: list[str]) -> None:
    """Refuses a value that neither a field's name nor another value of it precedes.

    >>> require_named(["x.py", "--hidden", "8", "--seeds", "2"], ["--hidden", "8"])
    >>> require_named(["x.py", "--seeds", "2", "4"], ["4"])
    Traceback (most recent call last):
    ppo_jax.errors.UserError: '4': expected --FIELD before it, got '2'

    Raises:
        UserError: If there is one.
    """
    words, place = _words(argv), -1
    for field in fields:
        before, place = place, words.index(field, place + 1)
        if not field.startswith("-") and place != before + 1:
            got = words[place - 1]
            raise UserError(f"{field!r}: expected --FIELD before it, got {got!r}")


def _words(argv: list[str] | None) -> list[str]:
    """Returns the words of a command line."""
    return sys.argv[1:] if argv is None else argv


def require_spelt(options: list[str], overrides: list[str]) -> None:
    """Raises a `UserError` for a word that resembles an option more than a field.

    A name with a dot is that of a part's field, as no option has a dot.
    """
    fields = [f"--{field.name}" for field in dataclasses.fields(Config)]
    known = [*fields, *(name.replace("_", "-") for name in fields), *options]
    for word in overrides:
        name = word.partition("=")[0]
        if not name.startswith("--") or "." in name:
            continue
        if suggestion.closest(name, known) in options:
            raise UserError(suggestion.unknown("option", name, options))

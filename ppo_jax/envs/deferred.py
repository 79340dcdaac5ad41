"""What is imported by whoever uses it, and by nobody else."""

import importlib
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from types import ModuleType
from typing import Any


@contextmanager
def deferred(*names: str) -> Iterator[None]:
    """Defers imports: within it, each of the modules is a stand-in.

    Whoever imports one binds the stand-in, which imports the module as soon as
    something of it is used. Modules that are imported already stay as they are.

    >>> with deferred("colorsys"):
    ...     import colorsys
    >>> colorsys.rgb_to_hsv(1.0, 0.0, 0.0)
    (0.0, 1.0, 1.0)
    """
    absent = [name for name in names if name not in sys.modules]
    sys.modules |= {name: _Deferred(name) for name in absent}
    try:
        yield
    finally:
        for name in absent:
            del sys.modules[name]


def names(module: str, homes: Mapping[str, str]) -> Callable[[str], Any]:
    """A `__getattr__` of a module: names that are imported when they are asked for.

    >>> get = names("json", {"rgb_to_hsv": "colorsys"})
    >>> get("rgb_to_hsv")(1.0, 0.0, 0.0)
    (0.0, 1.0, 1.0)
    >>> get("hsv")
    Traceback (most recent call last):
    AttributeError: module 'json' has no attribute 'hsv'
    """

    def get(name: str) -> Any:
        if name not in homes:
            said, owner = f"has no attribute {name!r}", sys.modules[module]
            raise AttributeError(f"module {module!r} {said}", name=name, obj=owner)
        return getattr(importlib.import_module(homes[name]), name)

    return get


class _Deferred(ModuleType):
    """Stands in for a module until something of it is used."""

    def __getattr__(self, name: str) -> object:
        if name.startswith("__"):  # Asked of every module by whoever inspects them.
            raise AttributeError(name)
        return getattr(importlib.import_module(self.__name__), name)

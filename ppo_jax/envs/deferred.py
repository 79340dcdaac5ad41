"""Modules that others import but a training never uses."""

import importlib
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from types import ModuleType


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


class _Deferred(ModuleType):
    """Stands in for a module until something of it is used."""

    def __getattr__(self, name: str) -> object:
        if name.startswith("__"):  # Asked of every module by whoever inspects them.
            raise AttributeError(name)
        return getattr(importlib.import_module(self.__name__), name)

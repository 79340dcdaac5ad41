"""Modules that are imported when something of them is used, and not before."""

import importlib
import sys
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from types import ModuleType
from typing import Any

from ppo_jax.envs.opengl import unmet


@contextmanager
def deferred(*names: str) -> Iterator[None]:
    """Defers imports: within the context, each of the modules is a stand-in.

    An import of one binds the stand-in, which imports the module as soon as something
    of it is used. Importing a deferred part of a deferred package is no such use.
    Modules that are imported already stay as they are.

    >>> with deferred("colorsys"):
    ...     import colorsys
    >>> colorsys.rgb_to_hsv(1.0, 0.0, 0.0)
    (0.0, 1.0, 1.0)
    """
    absent = {name: _Deferred(name) for name in names if name not in sys.modules}
    for name, module in absent.items():
        package, _, part = name.rpartition(".")
        if package in absent:
            setattr(absent[package], part, module)
    sys.modules |= absent
    try:
        yield
    finally:
        for module in absent.values():
            _withdraw(module)


def names(module: str, homes: Mapping[str, str]) -> Callable[[str], Any]:
    """Returns a module's `__getattr__`, which imports a name when it is asked for.

    >>> get = names("json", {"rgb_to_hsv": "colorsys"})
    >>> get("rgb_to_hsv")(1.0, 0.0, 0.0)
    (0.0, 1.0, 1.0)
    >>> get("hsv")
    Traceback (most recent call last):
    AttributeError: module 'json' has no attribute 'hsv'
    """

    def get(name: str) -> Any:
        if name not in homes:
            message, owner = f"has no attribute {name!r}", sys.modules[module]
            raise AttributeError(f"module {module!r} {message}", name=name, obj=owner)
        return getattr(importlib.import_module(homes[name]), name)

    return get


def brought(module: str, extra: str, wanted: str) -> ModuleType:
    """Imports a module that an extra of this package brings; hides its warnings.

    Args:
        module: Name of the module.
        extra: The extra of this package that `pip` is to install.
        wanted: What needs the module, as the start of a message.

    Raises:
        ValueError: If the module or something that it needs is not installed, if
            another file of that name is found in its place, or if its import fails.

    >>> brought("colorsys", extra="toys", wanted="Toy.id: 'top'").__name__
    'colorsys'
    >>> brought("toybox.envs", extra="toys", wanted="Toy.id: 'top'")
    Traceback (most recent call last):
    ValueError: Toy.id: 'top' needs toybox, which is not installed: pip install \
'ppo_jax[toys]'
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return importlib.import_module(module)
        except ModuleNotFoundError as error:
            how = f"which is not installed: pip install 'ppo_jax[{extra}]'"
            if file := _instead_of_package(str(error.name)):
                how = f"but {file} is found in its place: call that otherwise"
            raise ValueError(f"{wanted} needs {error.name}, {how}") from error
        except Exception as error:
            message = f"{type(error).__name__}: {error}"
            raise ValueError(
                f"{wanted} needs {module}: {message}{unmet(error)}"
            ) from error


def _instead_of_package(module: str) -> str | None:
    """Returns the file that was imported in place of a module's package, if any."""
    found = sys.modules.get(module.partition(".")[0])
    return None if hasattr(found, "__path__") else getattr(found, "__file__", None)


class _Deferred(ModuleType):
    """Stands in for a module until something of it is used."""

    def __getattr__(self, name: str) -> object:
        if name.startswith("__"):  # Tools that inspect modules ask all of them.
            raise AttributeError(name)
        _withdraw(self)
        module = importlib.import_module(self.__name__)
        if not hasattr(module, name):  # A part that was not imported yet, perhaps.
            with suppress(ModuleNotFoundError):
                importlib.import_module(f"{self.__name__}.{name}")
        return getattr(module, name)


def _withdraw(stand_in: _Deferred) -> None:
    """Removes a stand-in, so that the module itself can be imported."""
    if sys.modules.get(stand_in.__name__) is stand_in:
        del sys.modules[stand_in.__name__]

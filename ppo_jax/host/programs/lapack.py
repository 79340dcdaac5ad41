"""LAPACK for programs on a CPU, without all else that its package would import.

Orthogonal weights need it. JAX takes it from two modules of `scipy.linalg`; to import
them imports the package first, which takes a tenth of a second.
"""

import importlib.util
import sys
import threading
from types import ModuleType
from typing import Any

from jax._src.lax.linalg import initialize_lapack

PACKAGE = "scipy.linalg"
_READING = threading.RLock()


def initialize() -> None:
    """Makes LAPACK known to XLA, as JAX does where it makes such a call."""
    if PACKAGE not in sys.modules and (spec := importlib.util.find_spec(PACKAGE)):
        package = importlib.util.module_from_spec(spec)
        package.__class__, vars(package)["unread"] = _Package, True
        sys.modules[PACKAGE] = package
    initialize_lapack()


class _Package(ModuleType):
    """A package that is read as soon as more of it is used than its modules."""

    def __getattr__(self, name: str) -> Any:
        self._read()
        return ModuleType.__getattribute__(self, name)

    def __dir__(self) -> list[str]:
        self._read()
        return sorted(vars(self))

    def _read(self) -> None:
        with _READING:
            if vars(self).pop("unread", False):  # Else this thread is reading it.
                loader: Any = self.__loader__
                loader.exec_module(self)

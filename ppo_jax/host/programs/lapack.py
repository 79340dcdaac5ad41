"""LAPACK for programs on a CPU, without the other imports of its package.

Orthogonal weights need LAPACK. JAX takes it from two modules of `scipy.linalg`. Their
import would import the whole package first, which takes a tenth of a second.
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
    """Registers LAPACK with XLA, as JAX does where it makes a call of LAPACK."""
    if PACKAGE not in sys.modules and (spec := importlib.util.find_spec(PACKAGE)):
        package = importlib.util.module_from_spec(spec)
        package.__class__, vars(package)["unread"] = _Package, True
        sys.modules[PACKAGE] = package
    initialize_lapack()


class _Package(ModuleType):
    """A package that is executed once anything but its modules is used."""

    def __getattr__(self, name: str) -> Any:
        self._read()
        return ModuleType.__getattribute__(self, name)

    def __dir__(self) -> list[str]:
        self._read()
        return sorted(vars(self))

    def _read(self) -> None:
        with _READING:
            if vars(self).pop("unread", False):  # Otherwise this thread is reading it.
                loader: Any = self.__loader__
                loader.exec_module(self)

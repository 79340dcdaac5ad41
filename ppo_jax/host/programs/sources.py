"""Code that this process has loaded, as far as programs may depend on it.

A file of code is the same while its times and its size are, as for Python's own
bytecode. The user's own may read a file while it is traced, or change other modules: it
is known only if it does no more than import what is known and name values.
"""

import ast
import builtins
import contextlib
import dataclasses
import functools
import os
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

from ppo_jax.errors import is_own
from ppo_jax.host.run_dir import script
from ppo_jax.host.run_dir.script import RUN

PACKAGES = {
    *("ppo_jax", "jax", "jaxlib", "numpy", "flax", "optax", "chex", "gymnax", "brax"),
    *("craftax", "jumanji", "mujoco_playground", "xminigrid"),
}
"""Packages whose code, while it is traced, depends on nothing but itself."""
KNOWN = sys.stdlib_module_names | PACKAGES
PURE = PACKAGES | {"math"}
"""Where functions come from that may be called to make a value."""
HARMLESS = (
    *(bool, int, float, str, tuple, list, dict, set, frozenset, range, zip, enumerate),
    *(abs, len, max, min, round, sorted, sum, dataclasses.replace, functools.partial),
    Path,
)
"""What else may be called for that; it does nothing more."""
HOOKS = ("sitecustomize", "usercustomize")
"""Modules that Python imports before all others, if there are any."""
SETTLED = 60.0
"""Source files must be older than the process's start by this many seconds, so that the
process has read them as they are now."""

Code = dict[str, tuple[str, int, int, int]]
"""Files of modules by module name, with the nanoseconds of their content's and their
own last change, and their bytes."""


class UnknownCode(Exception):
    """Error for a program whose code is not known, or may have changed."""


def begun(process: int | str = "self") -> float:
    """Returns when a process began, in seconds since the epoch, as Linux knows."""
    facts = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    after_boot = int(facts[19]) / os.sysconf("SC_CLK_TCK")
    return time.time() - time.clock_gettime(time.CLOCK_BOOTTIME) + after_boot


BEGAN = time.time()
with contextlib.suppress(OSError, AttributeError, IndexError, ValueError):
    BEGAN = min(BEGAN, begun())  # A fork has what was loaded before it began.


def code() -> Code:
    """Returns all loaded code except the user's own, which only names values.

    Raises:
        UnknownCode: If some of it may have changed since it was loaded.
    """
    found = {
        name: _stamp(file)
        for name, _, file in _loaded()
        if name != "__main__" and not _is_own(name, file)
    }
    if not _is_settled(found):
        raise UnknownCode
    return found


def is_as_here(code: Code) -> bool:
    """Returns whether this process has loaded the same code, or would load it."""
    here = {name: file for name, _, file in _loaded()}
    others = {_root(name) for name, file in here.items() if not _is_own(name, file)}
    as_then = others - KNOWN <= {_root(name) for name in (*code, "__main__")}
    hooked = all((name in here) == (name in code) for name in HOOKS)
    return (as_then and hooked and _is_settled(code)) and all(
        here.get(name, stamp[0]) == stamp[0] and _stamp(stamp[0]) == stamp
        for name, stamp in code.items()
    )


def own_texts() -> list[str]:
    """Returns the texts of the user's own files, each once.

    Raises:
        UnknownCode: If one of them does more than import known modules and name known
            values, or cannot be read, or code came from no file.
    """
    if not getattr(sys.modules["__main__"], "__file__", None):
        raise UnknownCode
    replaced = ((name, x, file) for (name, file), x in script.replaced.items())
    own = [each for each in (*_loaded(), *replaced) if _is_own(each[0], each[2])]
    for value in [value for _, module, _ in own for value in vars(module).values()]:
        require_known(value)
    known = KNOWN | {_root(name) for name, _, _ in own}
    try:
        texts = [Path(file).read_text() for *_, file in own]
        plain = all(
            _is_plain(ast.parse(text), vars(module), known)
            for text, (_, module, _) in zip(texts, own, strict=True)
        )
    except (OSError, SyntaxError, ValueError) as error:
        raise UnknownCode from error
    if not plain:
        raise UnknownCode
    return sorted({*texts})


def require_known(value: Any) -> None:
    """Raises `UnknownCode` for a value that no known package defines."""
    is_module = isinstance(value, ModuleType)
    home = value.__name__ if is_module else getattr(value, "__module__", None)
    if home is not None and _root(home) not in KNOWN:
        raise UnknownCode(home)


def _is_settled(code: Code) -> bool:
    """Returns whether this process has certainly read these files as they are now."""
    newest = max(max(changes) for _, *changes, _ in code.values())
    return newest < 1e9 * (BEGAN - SETTLED)


def _stamp(file: str) -> tuple[str, int, int, int]:
    facts = os.stat(file)
    return file, facts.st_mtime_ns, facts.st_ctime_ns, facts.st_size


def _is_plain(file: ast.Module, names: dict[str, Any], known: frozenset[str]) -> bool:
    """Returns whether a file only imports what is known, and names values.

    Args:
        file: The file.
        names: Everything that it has named.
        known: Names of packages and modules that may be imported.
    """
    return all(map(_names, file.body)) and all(
        _is_harmless(node, names, known) for node in ast.walk(file)
    )


def _names(statement: ast.stmt) -> bool:
    """Returns whether a statement imports, names a value, or is a docstring."""
    match statement:
        case ast.Assign(targets=targets):
            return all(map(_is_name, targets))
        case ast.AnnAssign(target=ast.Name()) | ast.Expr(value=ast.Constant()):
            return True
    return isinstance(statement, ast.Import | ast.ImportFrom)


def _is_name(target: ast.expr) -> bool:
    """Returns whether the target of an assignment is a name, or several."""
    each = target.elts if isinstance(target, ast.Tuple) else [target]
    return all(isinstance(one, ast.Name) for one in each)


def _is_harmless(node: ast.AST, names: dict[str, Any], known: frozenset[str]) -> bool:
    """Returns whether a part of a file is no code, imports none, and calls none."""
    match node:
        case ast.Lambda():
            return False
        case ast.Import(names=modules):
            return {_root(module.name) for module in modules} <= known
        case ast.ImportFrom(module=str(module), level=0):
            return _root(module) in known
        case ast.Call(func=function):
            called = _value(function, names)
            home = getattr(called, "__module__", None) or type(called).__module__
            harmless = any(called is each for each in HARMLESS)
            return harmless or _root(home) in PURE
    return True


def _value(expression: ast.expr, names: dict[str, Any]) -> Any:
    """Returns what a name stands for, with its attributes; None: that is not known."""
    match expression:
        case ast.Name(id=name):
            return names.get(name, getattr(builtins, name, None))
        case ast.Attribute(value=owner, attr=name):
            return getattr(_value(owner, names), name, None)
    return None


def _is_own(name: str, file: str) -> bool:
    """Returns whether a module is the user's own, as an experiment is anywhere."""
    return name == RUN or is_own(file)


def _loaded() -> Iterator[tuple[str, ModuleType, str]]:
    """Yields the names, the modules and the files of all that were loaded from one."""
    for name, module in [*sys.modules.items()]:
        file = getattr(module, "__file__", None) or ""
        if name == RUN or os.path.isabs(file):  # PyTorch's `torch.ops` has "_ops.py".
            yield name, module, file


def _root(name: str) -> str:
    return name.partition(".")[0]

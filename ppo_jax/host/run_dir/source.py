"""An experiment that was made in Python, as the file that a run directory keeps."""

import dataclasses
import enum
import functools
import inspect
import math
import sys
import warnings
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from ppo_jax.component import is_component
from ppo_jax.config import Config
from ppo_jax.envs.parameters import Parameters
from ppo_jax.errors import brief, is_own
from ppo_jax.host.run_dir import script
from ppo_jax.host.run_dir.description import describe
from ppo_jax.host.run_dir.script import Texts

FILE = '''"""An experiment that was made in Python."""

{imports}

config = {config}
'''
FILE_OF_ALL = '''"""Experiments that were made in Python, and trained together."""

import dataclasses
{imports}

settings = ({each})
configs = tuple(dataclasses.replace(settings[i], seed=seed) for i, seed in {runs})
config = configs[0]
'''
INDENT = "    "
PLAIN = {bool, int, float, str, bytes, type(None)}
"""Types whose values have a `repr` that is an expression for them."""


class Unwritable(Exception):
    """A part of an experiment that no file defines; the message says which."""


def texts(config: Config) -> Texts:
    """Returns the files that a run directory keeps of an experiment.

    They are its file and the user's own modules. If a part of the experiment is defined
    in no file that can be imported, the only file gives that reason.
    """
    return _or_why_not(lambda: _texts(config))


def texts_of_all(configs: Sequence[Config], runs: Sequence[Sequence[int]]) -> Texts:
    """Returns the same as `texts`, for experiments that are trained together.

    Args:
        configs: The experiments.
        runs: The setting and the seed of each experiment. Experiments of one setting
            differ in seeds only.
    """
    return _or_why_not(lambda: _texts_of_all(configs, runs))


def _or_why_not(texts: Callable[[], Texts]) -> Texts:
    try:
        return texts()
    except Unwritable as error:
        return {script.MADE: f"{error}\n".encode()}


def _texts(config: Config) -> Texts:
    used: set[str] = set()
    text = _call(config, used, INDENT)
    imports = "\n".join(f"import {name}" for name in sorted(used))
    file = FILE.format(imports=imports, config=text)
    _require_same(_made(file)["config"], config)
    return {script.KEPT: file.encode()} | script.beside(_places(used))


def _texts_of_all(configs: Sequence[Config], runs: Sequence[Sequence[int]]) -> Texts:
    used: set[str] = set()
    first = {
        setting: config for (setting, _), config in zip(runs, configs, strict=True)
    }
    each = "".join(
        f"\n{INDENT}{_call(first[setting], used, INDENT + INDENT)},"
        for setting in range(len(first))
    )
    imports = "\n".join(f"import {name}" for name in sorted(used))
    pairs = tuple(map(tuple, runs))
    file = FILE_OF_ALL.format(imports=imports, each=f"{each}\n", runs=pairs)
    for made, config in zip(_made(file)["configs"], configs, strict=True):
        _require_same(made, config)
    return {script.KEPT: file.encode()} | script.beside(_places(used))


def _made(file: str) -> dict[str, Any]:
    """Runs a file, and returns the names that it defines.

    Raises:
        Unwritable: If the file fails, as where the text of a part is no expression.
    """
    names: dict[str, Any] = {}
    try:
        with warnings.catch_warnings(action="ignore"):  # The original has warned.
            exec(file, names)
    except Exception as error:
        raise Unwritable(f"its parts as a file: {brief(error)}") from error
    return names


def _require_same(made: Config, config: Config) -> None:
    """Raises an `Unwritable` unless a file has made the same experiment."""
    if describe(made) != describe(config):
        raise Unwritable("a part is more than its fields say")


def _written(value: Any, used: set[str], indent: str) -> str:
    """Returns a value as an expression, and adds the modules it needs to `used`."""
    if isinstance(value, Parameters):
        return repr(value)
    if is_component(value) or hasattr(value, "_fields"):
        return _call(value, used, indent)
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return _call(value, used, indent)
    if isinstance(value, functools.partial):
        return _partial(value, used, indent)
    if isinstance(value, tuple):
        items = [f"{_written(item, used, indent)}," for item in value]
        return f"({' '.join(items)})"
    if isinstance(value, enum.Enum):
        return f"{_name(type(value), used)}[{value.name!r}]"
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, float) and not math.isfinite(value):
        return f'float("{value}")'
    if type(value) in PLAIN:
        return repr(value)
    return _name(value, used)


def _call(value: Any, used: set[str], indent: str) -> str:
    """Returns the call that makes a value from its fields."""
    fields = (
        value._asdict()
        if hasattr(value, "_fields")
        else {x.name: getattr(value, x.name) for x in dataclasses.fields(value)}
    )
    lines = [
        f"{indent}{name}={_written(each, used, indent + INDENT)},\n"
        for name, each in fields.items()
    ]
    inner = "".join(lines)
    name = _name(type(value), used)
    return f"{name}(\n{inner}{indent.removesuffix(INDENT)})" if lines else f"{name}()"


def _partial(value: Any, used: set[str], indent: str) -> str:
    given = [_written(each, used, indent) for each in value.args]
    given += [f"{k}={_written(v, used, indent)}" for k, v in value.keywords.items()]
    name = _name(functools.partial, used)
    return f"{name}({', '.join([_name(value.func, used), *given])})"


def _name(value: Any, used: set[str]) -> str:
    """Returns the name by which any module can use a class or a function.

    Raises:
        Unwritable: If there is no such name.
    """
    module = getattr(value, "__module__", None) or "?"
    name = getattr(value, "__qualname__", None)
    if name is None:
        raise Unwritable(f"{value!r:.80} is no value that a file can give")
    parts = module.split(".")
    for end in range(1, len(parts) + 1):
        home = ".".join(parts[:end])
        if home != "__main__" and _found(home, name) is value:
            used.add(home)
            return f"{home}.{name}"
    message = "is in no file that can be imported"
    raise Unwritable(f"{value.__name__} of {module} {message}")


def _found(module: str, name: str) -> Any:
    if not all(part.isidentifier() for part in [*module.split("."), *name.split(".")]):
        return None
    found = sys.modules.get(module)
    for part in name.split("."):
        found = getattr(found, part, None)
    return found


def _places(used: set[str]) -> list[Path]:
    """Returns the folders in which the user's own modules, among those used, are."""
    files = {name: inspect.getsourcefile(sys.modules[name]) for name in used}
    return [
        Path(str(file))
        .resolve()
        .parents[name.count(".") + file.endswith("__init__.py")]
        for name, file in files.items()
        if file and is_own(file)
    ]

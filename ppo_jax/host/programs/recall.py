"""Programs of runs before, found without being traced.

To trace a program, and to make it ready for the compiler, takes longer than to load it.
What that would come to is known beforehand where all is the same that it depends on:
its arguments and their structure, by which `jax.jit` knows its programs too, settings
of JAX, and code. A file of code is the same while its time and its size are, as for
Python's own bytecode. What code of the user's own depends on nobody can tell: it may
read a file while it is traced, or change what is in others. So where a file of theirs
does more than to import and to name values, nothing is recalled.
"""

import ast
import contextlib
import hashlib
import io
import json
import os
import pickle
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

import flax
import jax
import numpy as np
from jax._src import cache_key, compilation_cache
from jax.experimental import serialize_executable
from jaxlib._jax import Executable, LoadedExecutable

from ppo_jax.component import numbers
from ppo_jax.config import Config
from ppo_jax.errors import is_own
from ppo_jax.host.programs.compiling import Compilation
from ppo_jax.host.programs.store import Store
from ppo_jax.host.run_dir.description import describe
from ppo_jax.host.run_dir.script import RUN

KNOWN = sys.stdlib_module_names | {
    *("ppo_jax", "jax", "jaxlib", "numpy", "flax", "optax", "chex", "gymnax", "brax"),
    *("craftax", "jumanji", "mujoco_playground", "xminigrid"),
}
"""Packages whose code, while it is traced, depends on nothing but itself."""
BEGAN = time.time()
SETTLED = 60.0
"""Seconds before that since which code has to have been as it is: this process has read
it, and not what was there before."""
COMPILED = "compiled"

Code = dict[str, tuple[str, int, int]]
"""Modules by name: their files, when those were changed in nanoseconds, their bytes."""


class UnknownCode(Exception):
    """What a program would be made of is defined by no known package."""


class Shelf:
    """Programs of an experiment.

    Args:
        store: Where programs are; None: nowhere, so that all are compiled.
        config: The experiment, as all of its programs know it. One that is given an
            experiment knows that as well.
        place: Where its members lie, in words.
        devices: Those devices.
    """

    def __init__(
        self, store: Store | None, config: Config, place: str, devices: Sequence[Any]
    ):
        self._store, self._devices, self._code = None, devices, None
        with contextlib.suppress(UnknownCode):
            self._subject = [_said(config), place, *_surroundings(), *_own_texts()]
            self._store = store

    def find(self, wanted: Compilation) -> Callable[[], Any] | None:
        """What loads a program, or compiles it if that fails; None: there is none."""
        kept = self._store and wanted.name and self._store.get(self._key(wanted))
        if not kept:
            return None
        try:
            return self._loading(io.BytesIO(kept), wanted)
        except Exception:  # Whatever is wrong with it, it can be made anew.
            return None

    def compile(self, lowered: jax.stages.Lowered, wanted: Compilation) -> Any:
        """Compiles a program, and keeps how it can be found the next time."""
        if self._store is None or not wanted.name:
            return lowered.compile()
        with self._store.asked() as keys:
            compiled = lowered.compile()
        # What cannot be written down is traced again, and so is what JAX does not keep.
        with contextlib.suppress(Exception):
            kept = _written(compiled, *keys)
            self._store.put(self._key(wanted), kept)
        return compiled

    def _loading(
        self, kept: io.BytesIO, wanted: Compilation
    ) -> Callable[[], Any] | None:
        """What loads what was kept, unless anything has changed since."""
        if not self._is_as_here(pickle.load(kept)):
            return None
        reader = _Reader(kept, self._devices[0].client, self._devices)
        given, leaves, returned = reader.load()
        if given != jax.tree.structure((wanted.args, {})):
            return None

        def load():
            try:
                loaded = reader.load().load()
            except Exception:  # As above.
                return self.compile(wanted.lower(), wanted)
            return jax.stages.Compiled(loaded, [], given.unflatten(leaves), returned)

        return load

    def _is_as_here(self, code: Code) -> bool:
        """Whether code is that of this process; all programs of a run have the same."""
        if code != self._code:
            self._code = code if _is_as_here(code) else None
        return code == self._code

    def _key(self, of: Compilation) -> str:
        shapes = [
            (getattr(x, "shape", ()), str(getattr(x, "dtype", type(x))))
            for x in jax.tree.leaves(of.args)
        ]
        told = [_said(x) for x in of.args if isinstance(x, Config)]
        return json.dumps([of.name, shapes, told, self._subject])


def _said(config: Config) -> dict[str, str]:
    """What an experiment says by field, but for numbers: programs are given those."""
    traced = numbers(config)
    return {k: x["value"] for k, x in describe(config).items() if k not in traced}


class _Writer(serialize_executable._JaxPjrtPickler):
    """Refers to what XLA has compiled by its key in the store, and to known code."""

    def __init__(self, file: io.BytesIO, key: str):
        super().__init__(file)
        self._key = key

    def persistent_id(self, obj: Any) -> Any:
        if isinstance(obj, LoadedExecutable | Executable):
            return (COMPILED, self._key)
        return super().persistent_id(obj)

    def reducer_override(self, obj: Any) -> Any:
        if callable(obj):
            _require_known(obj)
        return NotImplemented


class _Reader(serialize_executable._JaxPjrtUnpickler):
    """Loads what XLA has compiled from where JAX keeps it."""

    def persistent_load(self, pid: Any) -> Any:
        if pid[0] != COMPILED:
            return super().persistent_load(pid)
        load = compilation_cache.get_executable_and_time
        loaded, _ = load(pid[1], None, self.backend, self.execution_devices)
        if loaded is None:
            raise FileNotFoundError(pid[1])
        return loaded


def _written(compiled: Any, key: str) -> bytes:
    """How a program is found.

    Raises:
        UnknownCode: If another process cannot be sure to need the same one.
    """
    _own_texts()  # Of what was imported meanwhile, too.
    if compiled._params.const_args:
        raise UnknownCode
    kept = io.BytesIO()
    pickle.dump(_code(), kept)
    writer, (leaves, given) = _Writer(kept, key), jax.tree.flatten(compiled.args_info)
    writer.dump((given, leaves, compiled.out_tree))
    writer.dump(compiled._executable._unloaded_executable)
    return kept.getvalue()


def _surroundings() -> list[str]:
    """What programs depend on beside their experiment and their code."""
    settings: Any = jax.config
    places = sys.prefix, os.environ.get("PYTHONPATH", "")
    kinds = [device.device_kind for device in jax.devices()]
    platform = jax.devices()[0].client.platform_version
    known = hashlib.sha256()  # Of devices, what JAX's own key has of them.
    cache_key._hash_accelerator_config(known, np.array(jax.devices()))
    given = [f"{name}={value}" for name, value in sorted(settings.values.items())]
    kinds.append(known.hexdigest())
    return [sys.version, *places, platform, *kinds, *given, repr(flax.config)]


def _code() -> Code:
    """All code that is loaded, but for the user's own, which only names values.

    Raises:
        UnknownCode: If some of it may have changed since it was loaded.
    """
    code = {
        name: _stamp(file)
        for name, _, file in _loaded()
        if name not in ("__main__", RUN) and not _is_own(name, file)
    }
    if not _is_settled(code):
        raise UnknownCode
    return code


def _is_as_here(code: Code) -> bool:
    """Whether this process has what another one had, or would load it."""
    here = {name: file for name, _, file in _loaded()}
    return _is_settled(code) and all(
        here.get(name, stamp[0]) == stamp[0] and _stamp(stamp[0]) == stamp
        for name, stamp in code.items()
    )


def _is_settled(code: Code) -> bool:
    """Whether this process has read these files as they are."""
    return max(changed for _, changed, _ in code.values()) < 1e9 * (BEGAN - SETTLED)


def _stamp(file: str) -> tuple[str, int, int]:
    facts = os.stat(file)
    return file, facts.st_mtime_ns, facts.st_size


def _own_texts() -> list[str]:
    """The user's own files.

    Raises:
        UnknownCode: If one of them does more than to import and to name what is known,
            or cannot be read.
    """
    own = [(module, file) for name, module, file in _loaded() if _is_own(name, file)]
    for value in [value for module, _ in own for value in vars(module).values()]:
        _require_known(value)
    try:
        texts = sorted(Path(file).read_text() for _, file in own)
        plain = all(_is_plain(ast.parse(text)) for text in texts)
    except (OSError, SyntaxError, ValueError) as error:
        raise UnknownCode from error
    if not plain:
        raise UnknownCode
    return texts


def _is_plain(file: ast.Module) -> bool:
    """Whether a file only imports, and names values, none of which is code."""
    return all(map(_names, file.body)) and not any(
        isinstance(node, ast.Lambda) for node in ast.walk(file)
    )


def _names(statement: ast.stmt) -> bool:
    """Whether a statement imports, names a value, or is a docstring."""
    match statement:
        case ast.Assign(targets=targets):
            return all(map(_is_name, targets))
        case ast.AnnAssign(target=ast.Name()) | ast.Expr(value=ast.Constant()):
            return True
    return isinstance(statement, ast.Import | ast.ImportFrom)


def _is_name(target: ast.expr) -> bool:
    """Whether what is assigned to is a name, or several."""
    each = target.elts if isinstance(target, ast.Tuple) else [target]
    return all(isinstance(one, ast.Name) for one in each)


def _is_own(name: str, file: str) -> bool:
    """Whether a module is the user's own; one of their files may be called as ours."""
    return name.partition(".")[0] not in KNOWN and is_own(file)


def _loaded() -> Iterator[tuple[str, ModuleType, str]]:
    """Modules that have files, with their names and those."""
    for name, module in [*sys.modules.items()]:
        if file := getattr(module, "__file__", None):
            yield name, module, file


def _require_known(value: Any) -> None:
    """Raises `UnknownCode` for what is not defined by a known package."""
    is_module = isinstance(value, ModuleType)
    home = value.__name__ if is_module else getattr(value, "__module__", None)
    if home is not None and home.partition(".")[0] not in KNOWN:
        raise UnknownCode(home)

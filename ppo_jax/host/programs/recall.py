"""Programs of earlier runs, found without being traced.

Tracing a program and preparing it for the compiler take longer than loading it. The
result is known beforehand if everything that it depends on is the same: its arguments
and their structure, by which `jax.jit` knows its programs too, settings of JAX, and
code, as far as `sources` knows it.
"""

import contextlib
import hashlib
import io
import json
import os
import pickle
import sys
from collections.abc import Callable, Sequence
from typing import Any

import flax
import jax
import numpy as np
from jax._src import cache_key, compilation_cache
from jax.experimental import serialize_executable
from jaxlib._jax import Executable, LoadedExecutable

from ppo_jax.component import numbers
from ppo_jax.config import Config
from ppo_jax.host.programs import sources
from ppo_jax.host.programs.compiling import Compilation
from ppo_jax.host.programs.sources import Code, UnknownCode
from ppo_jax.host.programs.store import Store
from ppo_jax.host.run_dir.description import describe

COMPILED = "compiled"


class Shelf:
    """Programs of an experiment.

    Args:
        store: Store of the programs; None: all programs are compiled.
        config: The experiment that all of its programs depend on. A program with an
            experiment among its arguments depends on that one as well.
        place: Places of the members on devices, in words.
        devices: Devices of the members.
    """

    def __init__(
        self, store: Store | None, config: Config, place: str, devices: Sequence[Any]
    ):
        self._store, self._devices, self._code = None, devices, None
        with contextlib.suppress(UnknownCode):
            own = sources.own_texts()
            self._subject = [_said(config), place, *_surroundings(), *own]
            self._store = store

    def find(self, wanted: Compilation) -> Callable[[], Any] | None:
        """Returns a function that loads or compiles a program; None: it is not kept."""
        kept = self._store and wanted.name and self._store.get(self._key(wanted))
        if not kept:
            return None
        try:
            return self._loading(io.BytesIO(kept), wanted)
        except Exception:  # Whatever is wrong with it, it can be compiled again.
            return None

    def compile(self, lowered: jax.stages.Lowered, wanted: Compilation) -> Any:
        """Compiles a program, and keeps the entry by which `find` loads it later."""
        if self._store is None or not wanted.name:
            return lowered.compile()
        with self._store.asked() as keys:
            compiled = lowered.compile()
        # Programs that cannot be pickled, or that JAX does not keep, are traced again.
        with contextlib.suppress(Exception):
            kept = _written(compiled, *keys)
            self._store.put(self._key(wanted), kept)
        return compiled

    def _loading(
        self, kept: io.BytesIO, wanted: Compilation
    ) -> Callable[[], Any] | None:
        """Returns the loader of a kept entry; None: its code or arguments changed."""
        if not self._is_as_here(pickle.load(kept)):
            return None
        reader = _Reader(kept, self._devices[0].client, self._devices)
        given, leaves, returned = reader.load()
        if given != jax.tree.structure((wanted.args, {})):
            return None

        def load():
            try:
                loaded = reader.load().load()
            except Exception:  # The program can be compiled again.
                return self.compile(wanted.lower(), wanted)
            return jax.stages.Compiled(loaded, [], given.unflatten(leaves), returned)

        return load

    def _is_as_here(self, code: Code) -> bool:
        """Returns whether code is as here; cached, as a run's programs share it."""
        if code != self._code:
            self._code = code if sources.is_as_here(code) else None
        return code == self._code

    def _key(self, of: Compilation) -> str:
        shapes = [
            (getattr(x, "shape", ()), str(getattr(x, "dtype", type(x))))
            for x in jax.tree.leaves(of.args)
        ]
        told = [_said(x) for x in of.args if isinstance(x, Config)]
        return json.dumps([of.name, shapes, told, self._subject])


def _said(config: Config) -> dict[str, str]:
    """Returns an experiment's fields but its numbers, which are programs' arguments."""
    traced = numbers(config)
    return {k: x["value"] for k, x in describe(config).items() if k not in traced}


class _Writer(serialize_executable._JaxPjrtPickler):
    """Pickler that writes XLA's programs as keys of the store, and known code only."""

    def __init__(self, file: io.BytesIO, key: str):
        super().__init__(file)
        self._key = key

    def persistent_id(self, obj: Any) -> Any:
        if isinstance(obj, LoadedExecutable | Executable):
            return (COMPILED, self._key)
        return super().persistent_id(obj)

    def reducer_override(self, obj: Any) -> Any:
        if callable(obj):
            sources.require_known(obj)
        return NotImplemented


class _Reader(serialize_executable._JaxPjrtUnpickler):
    """Unpickler that loads XLA's programs from where JAX keeps them."""

    def persistent_load(self, pid: Any) -> Any:
        if pid[0] != COMPILED:
            return super().persistent_load(pid)
        load = compilation_cache.get_executable_and_time
        loaded, _ = load(pid[1], None, self.backend, self.execution_devices)
        if loaded is None:
            raise FileNotFoundError(pid[1])
        return loaded


def _written(compiled: Any, key: str) -> bytes:
    """Returns the entry by which a compiled program is found.

    Raises:
        UnknownCode: If another process cannot be sure to need the same program.
    """
    sources.own_texts()  # Checks modules that were imported meanwhile, too.
    if compiled._params.const_args:
        raise UnknownCode
    kept = io.BytesIO()
    pickle.dump(sources.code(), kept)
    writer, (leaves, given) = _Writer(kept, key), jax.tree.flatten(compiled.args_info)
    writer.dump((given, leaves, compiled.out_tree))
    writer.dump(compiled._executable._unloaded_executable)
    return kept.getvalue()


def _surroundings() -> list[str]:
    """Returns the versions, settings and devices that programs depend on."""
    settings: Any = jax.config
    places = sys.prefix, os.environ.get("PYTHONPATH", "")
    kinds = [device.device_kind for device in jax.devices()]
    platform = jax.devices()[0].client.platform_version
    known = hashlib.sha256()  # Hashes devices as JAX's own key does.
    cache_key._hash_accelerator_config(known, np.array(jax.devices()))
    given = [f"{name}={value}" for name, value in sorted(settings.values.items())]
    kinds.append(known.hexdigest())
    return [sys.version, *places, platform, *kinds, *given, repr(flax.config)]

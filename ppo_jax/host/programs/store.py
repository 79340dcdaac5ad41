"""Compiled programs kept on disk, which the next run finds again.

JAX asks its store for a program by a key of its computations. On a CPU the program also
consists of one machine's instructions, and is cut into parts for its cores. This store
knows the machine, and seals its files; so a program whose file is damaged or out of
place is compiled again. Any other failure costs a compilation too, and nothing more.
"""

import contextlib
import hashlib
import os
import sys
import threading
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jax
import jaxlib.version
from jax._src import compilation_cache

from ppo_jax.arrays import devices

BYTES = 256 << 20
"""Most bytes of all files together; `JAX_COMPILATION_CACHE_MAX_SIZE` overrides it."""
SECONDS = 0.0
"""Programs that compile for at least this long are kept: all of them, because even the
smallest is read more quickly than compiled."""
SECONDS_GIVEN = "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS"
OFF = "JAX_ENABLE_COMPILATION_CACHE=0"
SETTINGS = ("XLA_FLAGS", "LIBTPU_INIT_ARGS", "NPROC", "JAX_NUM_CPU_DEVICES")
"""Environment variables that programs depend on."""
CPUINFO = Path("/proc/cpuinfo")
CPU = {
    *("vendor_id", "cpu family", "model", "model name", "stepping", "flags"),
    *("CPU implementer", "CPU architecture", "CPU variant", "CPU part", "Features"),
}
"""Names of lines of `CPUINFO` that tell a CPU's instructions, and which are quick."""
FAILED = "Error (reading|writing) persistent compilation cache entry"
"""Pattern of JAX's warning when XLA cannot write or load a program."""
SEAL = hashlib.sha256().digest_size


def keep() -> None:
    """Makes JAX keep compiled programs, unless the user has chosen something else.

    It is called after `devices.prepare`. If no file describes the CPU, no program is
    kept.
    """
    settings: Any = jax.config
    chosen = settings.jax_compilation_cache_dir is not None
    if chosen or not settings.jax_enable_compilation_cache or not CPUINFO.exists():
        return
    limit = settings.jax_compilation_cache_max_size
    try:
        store = Store(_folder(), machine(), BYTES if limit < 0 else limit)
    except (OSError, RuntimeError) as error:
        print(f"programs are compiled anew: {error}", file=sys.stderr)
        return
    if SECONDS_GIVEN not in os.environ:
        settings.update("jax_persistent_cache_min_compile_time_secs", SECONDS)
    warnings.filterwarnings("ignore", FAILED)
    hook: Any = compilation_cache
    hook._cache = store


def kept() -> "Store | None":
    """Returns this process's `Store`, or None if JAX has none or another one."""
    hook: Any = compilation_cache
    return hook._cache if isinstance(hook._cache, Store) else None


def machine() -> str:
    """Returns the CPU, settings and versions that JAX's key of a program omits."""
    lines = CPUINFO.read_text().splitlines()
    cpu = sorted({line for line in lines if line.partition(":")[0].strip() in CPU})
    given = [f"{name}={_setting(name)}" for name in SETTINGS]
    versions = [f"jax {jax.__version__}", f"jaxlib {jaxlib.version.__version__}"]
    return "\n".join([*versions, *cpu, f"{devices.cores()} cores", *given])


def _setting(name: str) -> str | None:
    """Returns an environment variable; of a file with flags of XLA, its text."""
    given = os.environ.get(name)
    if name == "XLA_FLAGS" and given and not given.lstrip().startswith("-"):
        with contextlib.suppress(OSError):
            return Path(given).read_text()
    return given


class Store:
    """Programs of one machine, in a folder that may hold other machines' as well.

    Files are replaced whole. A damaged file is replaced by the next process that
    compiles its program. So any number of processes may share the folder.

    Args:
        folder: Folder of the files; if it is missing, it is made, and a line says so.
            Another one says if no file can be added.
        machine: The machine and compiler of the programs, as `machine` returns them.
        limit: Most bytes of all files together; the least recently used ones beyond it
            are deleted.

    Raises:
        OSError: If the folder cannot be made.
    """

    def __init__(self, folder: Path, machine: str, limit: int):
        self._path = folder
        self._machine = machine.encode()
        self._limit = limit
        self._asked = threading.local()
        if _made(folder):
            print(
                f"compiled programs are kept in {folder} for quick starts; "
                f"{OFF} turns that off",
                file=sys.stderr,
            )
        elif not os.access(folder, os.W_OK):
            print(f"programs are not kept: {folder} is read-only", file=sys.stderr)

    def get(self, key: str) -> bytes | None:
        """Returns a program as it was put, or None."""
        getattr(self._asked, "keys", []).append(key)
        file = self._file(key)
        try:
            sealed = file.read_bytes()
        except OSError:
            return None
        program = sealed[SEAL:]
        if sealed[:SEAL] != self._digest(key.encode(), program):
            return None
        with contextlib.suppress(OSError):
            os.utime(file)
        return program

    @contextlib.contextmanager
    def asked(self) -> Iterator[list[str]]:
        """Yields a list of the keys that this thread asks for meanwhile."""
        self._asked.keys = []
        try:
            yield self._asked.keys
        finally:
            del self._asked.keys

    def put(self, key: str, program: bytes) -> None:
        """Keeps a program, if the disk takes it."""
        file = self._file(key)
        part = file.with_suffix(f".{os.getpid()}")
        try:
            part.write_bytes(self._digest(key.encode(), program) + program)
            part.replace(file)
        except OSError:
            with contextlib.suppress(OSError):
                part.unlink()
        with contextlib.suppress(OSError):
            self._shrink()

    def _file(self, key: str) -> Path:
        return self._path / self._digest(key.encode()).hex()

    def _digest(self, *parts: bytes) -> bytes:
        return hashlib.sha256(b"\n".join([self._machine, *parts])).digest()

    def _shrink(self) -> None:
        """Deletes all but the most recently used files that fit the limit together."""
        found = []
        for file in self._path.iterdir():
            with contextlib.suppress(OSError):  # Gone meanwhile, or a link to nowhere.
                found.append((file, file.stat()))
        room = self._limit
        for file, facts in sorted(found, key=lambda one: -one[1].st_mtime_ns):
            if facts.st_size > room:
                file.unlink(missing_ok=True)
            else:
                room -= facts.st_size


def _folder() -> Path:
    """Returns the folder for programs in the user's caches, as freedesktop.org rules.

    Raises:
        RuntimeError: If the user has no home directory.
    """
    given = Path(os.environ.get("XDG_CACHE_HOME", ""))
    caches = given if given.is_absolute() else Path.home() / ".cache"
    return caches / "ppo_jax" / "programs"


def _made(folder: Path) -> bool:
    """Makes a folder, unless it is there; returns whether it did.

    What is in it is run, so it is the user's alone.
    """
    try:
        folder.mkdir(mode=0o700, parents=True)
    except FileExistsError:
        if not folder.is_dir():
            raise
        return False
    return True

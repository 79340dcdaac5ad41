"""Compiled programs, which the next run finds again.

JAX asks its store for a program by a key of what it computes. On a CPU it is also made
of the instructions of one machine, and cut into parts for its cores. This store knows
the machine, and seals what it keeps; so what is damaged or out of place is compiled
anew. All else that goes wrong costs a compilation too, and nothing more.
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
"""Of all files together, unless `JAX_COMPILATION_CACHE_MAX_SIZE` says how many."""
SECONDS = 0.0
"""That a compilation takes at least; to read even the smallest program is quicker."""
SECONDS_GIVEN = "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS"
OFF = "JAX_ENABLE_COMPILATION_CACHE=0"
SETTINGS = ("XLA_FLAGS", "LIBTPU_INIT_ARGS", "NPROC", "JAX_NUM_CPU_DEVICES")
"""Variables that programs depend on."""
CPUINFO = Path("/proc/cpuinfo")
CPU = {
    *("vendor_id", "cpu family", "model", "model name", "stepping", "flags"),
    *("CPU implementer", "CPU architecture", "CPU variant", "CPU part", "Features"),
}
"""The lines of it that say which instructions there are, and which are quick."""
FAILED = "Error (reading|writing) persistent compilation cache entry"
"""What JAX warns of where XLA can neither write nor load a program."""
SEAL = hashlib.sha256().digest_size


def keep() -> None:
    """Has JAX keep what it compiles, unless the user has chosen something else.

    After `devices.prepare`. Nothing is kept where no file tells what the CPU can.
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
    """Where this process keeps programs, if it is for this package to say."""
    hook: Any = compilation_cache
    return hook._cache if isinstance(hook._cache, Store) else None


def machine() -> str:
    """What a program is compiled for and by, as far as JAX's key does not say it."""
    lines = CPUINFO.read_text().splitlines()
    cpu = sorted({line for line in lines if line.split("\t")[0].strip() in CPU})
    given = [f"{name}={os.environ.get(name)}" for name in SETTINGS]
    versions = [f"jax {jax.__version__}", f"jaxlib {jaxlib.version.__version__}"]
    return "\n".join([*versions, *cpu, f"{devices.cores()} cores", *given])


class Store:
    """Programs of one machine, in a folder that has those of others as well.

    Files are replaced whole, a damaged one by the next process that compiles what was
    in it; so any number of them may share the folder.

    Args:
        folder: Is made if need be, and said to be made.
        machine: What programs are compiled for and by.
        limit: Bytes of all files together; those go that were not used for longest.

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

    def get(self, key: str) -> bytes | None:
        """A program as it was put, or nothing."""
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
        """The keys that this thread asks for meanwhile."""
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
        """Deletes all but the files that were used last, as many as fit."""
        found = [(file, file.stat()) for file in self._path.iterdir()]
        total = 0
        for file, facts in sorted(found, key=lambda one: -one[1].st_mtime_ns):
            total += facts.st_size
            if total > self._limit:
                file.unlink(missing_ok=True)


def _folder() -> Path:
    """Where the user's caches are, by the rules of freedesktop.org.

    Raises:
        RuntimeError: If they have no home.
    """
    given = Path(os.environ.get("XDG_CACHE_HOME", ""))
    caches = given if given.is_absolute() else Path.home() / ".cache"
    return caches / "ppo_jax" / "programs"


def _made(folder: Path) -> bool:
    """Makes a folder, unless it is there."""
    try:
        folder.mkdir(parents=True)
    except FileExistsError:
        if not folder.is_dir():
            raise
        return False
    return True

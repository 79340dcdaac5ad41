"""Processes of Python in which all that commands import is imported already.

A process that uses this has a child, the zygote, which imports all modules of commands,
waits, and forks for each command; another zygote has only the modules that all commands
import first. Threads do not outlive a fork, and JAX starts some with its first array;
until then, a process that was forked is like any other one.
"""

import atexit
import functools
import gc
import importlib
import json
import os
import runpy
import signal
import subprocess
import sys
import tempfile
import threading
from pathlib import Path

import jax
from jax._src import xla_bridge

from ppo_jax.__main__ import COMMANDS

MODULES = (
    *(f"ppo_jax.{name}" for name in COMMANDS),
    "jaxlib.lapack",  # Of orthogonal weights.
    "jaxlib.mlir.dialects.builtin",
    "jaxlib.mlir.dialects.mhlo",
    "ppo_jax.envs.probes",
    "ppo_jax.host.run_dir.checkpoint",
    "ppo_jax.sweeps.running",
    "rich._emoji_codes",
    "scipy.linalg",  # Of orthogonal weights as well.
    "tyro._backends._tyro_backend",
)
"""Modules that take long to import."""
PACKAGE = ("ppo_jax",)
"""Modules that are imported before any command, however it is started."""
READ_EARLY = ("JAX_", "PYTHON")
"""Prefixes of variables that are read before a command starts."""
DEVICES = "JAX_NUM_CPU_DEVICES"
LATE = {DEVICES: -1, "JAX_PLATFORMS": None, "JAX_COMPILATION_CACHE_DIR": None}
"""Those that can also be set in a forked process, and what JAX has without them."""
SINGLE = {"OPENBLAS_NUM_THREADS": "1"}


def run(words, environment, cwd=None, timeout=180, imported=MODULES):
    """Runs `python -m MODULE ...` or `python -c CODE ...` in a forked process."""
    (done,) = run_all([words], environment, cwd, timeout, imported)
    return done


def run_all(lines, environment, cwd=None, timeout=180, imported=MODULES):
    """Runs several such lines at once, each in a forked process."""
    early = [x for x in environment.items() if _is_early(x[0])]
    zygote = _zygote(tuple(early), imported)
    with tempfile.TemporaryDirectory() as folder:
        asked = []
        for i, words in enumerate(lines):
            streams = [str(Path(folder, f"{name}{i}")) for name in ("stdout", "stderr")]
            asked.append((words, environment, str(cwd or Path.cwd()), streams, timeout))
        print(json.dumps(asked), file=zygote.stdin, flush=True)
        statuses = json.loads(zygote.stdout.readline())
        said = [[Path(stream).read_text() for stream in one[3]] for one in asked]
    done = zip(lines, statuses, said, strict=True)
    return [subprocess.CompletedProcess(x, status, *text) for x, status, text in done]


def helper(name, *options, environment, timeout):
    """Runs a program of this folder."""
    words = ["-m", name, *map(str, options)]
    return run(words, environment, Path(__file__).parent, timeout)


def _is_early(name):
    return name.startswith(READ_EARLY) and name not in LATE


@functools.cache
def _zygote(early, imported):
    others = {x: y for x, y in os.environ.items() if not x.startswith(READ_EARLY)}
    process = subprocess.Popen(
        [sys.executable, __file__, *imported],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env=others | SINGLE | dict(early),
    )
    atexit.register(process.communicate)
    return process


def _wait():
    """Forks for the runs that each line asks for; a child returns the one it is."""
    for name in sys.argv[1:]:
        importlib.import_module(name)
    assert not xla_bridge.backends_are_initialized()
    gc.freeze()
    for line in sys.stdin:
        children = []
        for asked in json.loads(line):
            children.append(os.fork())
            if not children[-1]:
                return asked
        ends = [os.waitpid(child, 0)[1] for child in children]
        print(json.dumps([*map(os.waitstatus_to_exitcode, ends)]), flush=True)
    sys.exit()


def _become(words, environment, cwd, streams, timeout):
    """Runs code or a module with this environment, folder and output."""
    signal.alarm(timeout)
    for number, path in enumerate((os.devnull, *streams)):
        file = os.open(path, os.O_RDWR | os.O_CREAT)
        os.dup2(file, number)
        os.close(file)
    os.chdir(cwd)
    os.environ.clear()
    os.environ.update(environment)
    for name, absent in LATE.items():
        given = environment.get(name, absent)
        jax.config.update(name.lower(), int(given) if name == DEVICES else given)
    option, what, *rest = words
    sys.path[0], sys.argv = cwd, [option, *rest]
    if option == "-c":
        exec(what, {"__name__": "__main__"})
    else:
        sys.modules.pop(what, None)
        runpy.run_module(what, run_name="__main__", alter_sys=True)


def _leave(status):
    """Ends as Python does, without clearing imported modules, which would copy them."""
    threading._shutdown()
    atexit._run_exitfuncs()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(status)


def _status(end):
    """Returns the exit status of Python after an exception, and prints it."""
    if isinstance(end, SystemExit) and isinstance(end.code, int | None):
        return end.code or 0
    sys.excepthook(type(end), end, end.__traceback__)
    return 1


if __name__ == "__main__":
    asked = _wait()
    try:
        _become(*asked)
    except BaseException as end:
        _leave(_status(end))
    _leave(0)

"""Strict numerics, quick compilations, and the fixtures that all tests share."""

import functools
import gc
import os
from pathlib import Path

# Counts of devices, options of compilers and roundings below are those of a CPU.
os.environ.setdefault("JAX_PLATFORMS", "cpu")

import jax
import numpy as np
import pytest
from jax._src import compilation_cache
from jax._src.interpreters import mlir

from ppo_jax.host.programs import store

# `[B] - [B, 1]` is an error, not a `[B, B]` array.
jax.config.update("jax_numpy_rank_promotion", "raise")

# No environment, `fit` or command of this process takes every core.
jax.config.update("jax_num_cpu_devices", 1)

# Compilations outlive the session; the repository ignores the folder.
if "JAX_COMPILATION_CACHE_DIR" not in os.environ:
    cache = Path(__file__).parents[1] / ".cache" / "jax"
    jax.config.update("jax_compilation_cache_dir", str(cache))
    jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.0)


UNNEEDED = (
    "simplify-while-loops",
    "while-loop-invariant-code-motion",
    "while-loop-trip-count-annotator",
    "tree_reduction_rewriter",
    "cpu-parallel-task-assigner",
)
"""Passes of XLA that only make programs quicker, and compilations longer."""

QUICK = (
    "--xla_cpu_parallel_codegen_split_count=1 "
    f"--xla_disable_hlo_passes={','.join(UNNEEDED)}"
)
"""On a CPU, code in a third of the time, which runs a quarter slower.

Each program is given to LLVM in one piece; pieces are for cores that nobody else uses.
"""
if jax.__version_info__ < (0, 11, 1):  # XLA ends a process for a flag that it lacks.
    QUICK += " --xla_cpu_use_fusion_emitters=false"


_new_context = mlir.make_ir_context
_known_context = functools.cache(_new_context)


def _context():
    """Returns what JAX writes a program in: one context for all programs of a module.

    Making one takes longer than writing most programs. What is compiled while another
    program is written would be written into that one, and has its own.
    """
    return _new_context() if mlir.ir.Context.current else _known_context()


mlir.make_ir_context = _context


def _hurries(config):
    return "not slow" in config.option.markexpr


def pytest_configure(config):
    """Compiles in a hurry, unless all that is asked for is slow."""
    jax.config.update("jax_disable_most_optimizations", _hurries(config))
    if _hurries(config):
        flags = os.environ.get("XLA_FLAGS", "")
        os.environ["XLA_FLAGS"] = f"{flags} {QUICK}".strip()


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item):
    """Optimises what runs for long, also among what does not."""
    hurry = _hurries(item.config) and not item.get_closest_marker("slow")
    jax.config.update("jax_disable_most_optimizations", hurry)


def pytest_collection_finish():
    """Tests and modules stay: there is garbage to be found when a module is done."""
    gc.collect()
    gc.freeze()
    gc.disable()


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config, log):
    """Of several processes one has all of a module, and makes its fixtures once.

    Another rule can be asked for by name, as by `--dist worksteal`.
    """
    from xdist.scheduler import LoadFileScheduling

    return LoadFileScheduling(config, log) if config.option.dist == "load" else None


@pytest.fixture
def key():
    """A typed key, the same in every test."""
    return jax.random.key(0)


@pytest.fixture(params=["eager", "jit", "vmap"])
def variant(request):
    """A transformation of a function of arrays that must not change its results.

    Under `vmap` the arguments are the first of two members; the other one's are zeros.
    """
    return {"eager": lambda f: f, "jit": jax.jit, "vmap": _as_first_member}[
        request.param
    ]


def _as_first_member(f):
    def call(*args):
        pairs = jax.tree.map(lambda x: np.stack([x, np.zeros_like(x)]), args)
        return jax.tree.map(lambda x: x[0], jax.device_get(_mapped(f)(*pairs)))

    return call


@functools.cache
def _mapped(f):
    """One program for all tests of a function in a module."""
    return jax.jit(jax.vmap(f))


@pytest.fixture
def home(tmp_path, monkeypatch):
    """The caches of a user without any, whose command was just started."""
    settings = {
        "jax_compilation_cache_dir": None,
        "jax_persistent_cache_min_compile_time_secs": 0.0,
    }
    before = {name: getattr(jax.config, name) for name in settings}
    for name, value in settings.items():
        jax.config.update(name, value)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setenv(store.SECONDS_GIVEN, "0")
    compilation_cache.reset_cache()
    yield tmp_path
    for name, value in before.items():
        jax.config.update(name, value)
    compilation_cache.reset_cache()


@pytest.fixture(autouse=True, scope="module")
def forget_programs():
    """Drops the compiled programs of a module when it is done, and its garbage.

    Each program holds memory maps, of which a process may have only so many.
    """
    yield
    _mapped.cache_clear()
    _known_context.cache_clear()
    jax.clear_caches()
    gc.collect()

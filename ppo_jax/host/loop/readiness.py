"""Preparation of a run: its members and its programs are made side by side.

Compiling is most of a short run, and a single program keeps little more than one core
busy. Compiling also takes more memory than training does, unless it is given back.
"""

import contextlib
import ctypes
import gc
import sys
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor

import jax
import numpy as np

from ppo_jax import component
from ppo_jax.config import Config
from ppo_jax.host.devices import streams
from ppo_jax.host.devices.mesh import Begin, Layout
from ppo_jax.host.devices.simulation import layout_of
from ppo_jax.host.loop import phases
from ppo_jax.host.programs import lapack, store
from ppo_jax.host.programs.compiling import Compilation
from ppo_jax.host.programs.recall import Shelf
from ppo_jax.host.run_dir import templates
from ppo_jax.host.run_dir.recording import Memory
from ppo_jax.schedules import Progress
from ppo_jax.state import Population


@contextlib.contextmanager
def _no_collections() -> Iterator[None]:
    """Stops garbage collection, which takes long among the many objects of a trace."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


def _give_back() -> None:
    """Gives free memory back to the system; the C library of Linux would keep it."""
    if sys.platform == "linux" and hasattr(libc := ctypes.CDLL(None), "malloc_trim"):
        libc.malloc_trim(0)


@_no_collections()
def ready(config: Config, begin: Begin, record: Memory) -> tuple[Layout, Population]:
    """Returns an experiment's layout, with all programs compiled, and its members.

    Members of a run that goes on are blank, as a checkpoint is restored in their place:
    a program that makes members takes a CPU a second or two to compile.

    Args:
        config: The experiment.
        begin: Function that makes its members.
        record: The record that keeps the run, prepared while programs are compiled.

    Raises:
        JobError: If devices and processes cannot take equal shares of the members.
    """
    lapack.initialize()
    given = component.program(config, "pbt"), np.uint32(config.seed)
    shapes = jax.eval_shape(begin, *given)
    layout = layout_of(config, shapes.fitness.size)
    wanted, making = needed(config, layout, shapes), layout.making(begin, config)
    kept = None if config.env.simulated else store.kept()
    known = component.program(config)
    shelf = Shelf(kept, known, layout.whereabouts, layout.devices)
    with ThreadPoolExecutor() as pool:
        pool.submit(streams.evaluation, config.seed, 0)
        made = {each.name: _made(pool, shelf, each) for each in wanted}
        start = None if record.resumes else _made(pool, shelf, making)
        record.prepare()
        if start is None:
            population = templates.blank(layout.described(shapes))
        else:
            population = start.result()(*making.args)
        layout = layout.having({name: each.result() for name, each in made.items()})
    _give_back()
    return layout, population


def needed(config: Config, layout: Layout, shapes: Population) -> list[Compilation]:
    """Returns the programs of a run once it has its members, the longest first."""
    updates = np.arange(phases.room(config, shapes.fitness.size))
    progress = Progress.of(updates, config.num_updates)
    key = jax.eval_shape(lambda: streams.evaluation(config.seed, 0))
    how = config.eval_episodes, not config.eval_sample
    return layout.programs(layout.described(shapes), progress, key, *how)


def _made(pool: ThreadPoolExecutor, shelf: Shelf, wanted: Compilation) -> Future:
    """Returns the future of a program that is loaded if kept, otherwise compiled."""
    load = shelf.find(wanted)
    if load is not None:
        return pool.submit(load)
    # Lowering is Python's work, so programs are lowered one after the other.
    return pool.submit(shelf.compile, wanted.lower(), wanted)

"""How a run becomes ready: its members and its programs are made side by side.

Compiling is most of a short run, and a single program keeps little more than one core
busy. It also takes more memory than training does, unless that is given back.
"""

import contextlib
import ctypes
import gc
import sys
from collections.abc import Callable, Iterator
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
from ppo_jax.schedules import Progress
from ppo_jax.state import Population


@contextlib.contextmanager
def _no_collections() -> Iterator[None]:
    """Tracing makes many objects; to look for garbage among them takes its time."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


def _give_back() -> None:
    """Returns to the system what is free; the C library of Linux would keep it."""
    if sys.platform == "linux" and hasattr(libc := ctypes.CDLL(None), "malloc_trim"):
        libc.malloc_trim(0)


@_no_collections()
def ready(
    config: Config,
    begin: Begin,
    meanwhile: Callable[[], None] = lambda: None,
) -> tuple[Layout, Population]:
    """The members of an experiment, where nothing is left to be compiled.

    Args:
        config: The experiment.
        begin: Makes its members.
        meanwhile: What else is to be done while programs are compiled.

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
        start = _made(pool, shelf, making)
        meanwhile()
        population = start.result()(*making.args)
        layout = layout.having({name: each.result() for name, each in made.items()})
    _give_back()
    return layout, population


def needed(config: Config, layout: Layout, shapes: Population) -> list[Compilation]:
    """The programs of a run that has its members, the longest first."""
    updates = np.arange(phases.room(config, shapes.fitness.size))
    progress = Progress.of(updates, config.num_updates)
    key = jax.eval_shape(lambda: streams.evaluation(config.seed, 0))
    how = config.eval_episodes, not config.eval_sample
    return layout.programs(layout.described(shapes), progress, key, *how)


def _made(pool: ThreadPoolExecutor, shelf: Shelf, wanted: Compilation) -> Future:
    """A program that is loaded, or else compiled, by and by."""
    load = shelf.find(wanted)
    if load is not None:
        return pool.submit(load)
    # Python makes one after the other ready for the compiler.
    return pool.submit(shelf.compile, wanted.lower(), wanted)

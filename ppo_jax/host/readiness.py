"""How a run becomes ready: its members and its programs are made side by side.

Compiling is most of a short run, and a single program keeps little more than one core
busy. It also takes more memory than training does, unless that is given back.
"""

import contextlib
import ctypes
import gc
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor

import jax
import numpy as np

from ppo_jax.config import Config
from ppo_jax.host import phases, streams
from ppo_jax.host.mesh import Layout
from ppo_jax.host.simulation import layout_of
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
    begin: Callable[[Config], Population],
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
    shapes = jax.eval_shape(begin, config)
    size = shapes.fitness.size
    layout = layout_of(config, size)
    members = layout.described(shapes)

    updates = np.arange(phases.at_once(config, size))
    progress = Progress.of(updates, config.num_updates)
    key = jax.eval_shape(lambda: streams.evaluation(config.seed, 0))
    how = config.eval_episodes, not config.eval_sample
    longest, *others = layout.programs(members, progress, key, *how)
    with ThreadPoolExecutor() as pool:
        # Python makes one after the other ready for the compiler.
        programs = [pool.submit(longest().compile)]
        programs += [
            pool.submit(lambda lower: lower().compile(), each) for each in others
        ]
        programs.append(pool.submit(streams.evaluation, config.seed, 0))
        population = layout.make(begin, config)
        meanwhile()
        for program in programs:
            program.result()
    _give_back()
    return layout, population

"""Phases of updates: between two of them the host looks at what there is.

A phase is one call of a program where that is no matter. A CPU whose cores are all busy
with devices keeps, until a call returns, what it shares products among threads by; so
there it is as many calls as keep that small.
"""

import sys

import jax
import numpy as np

from ppo_jax.config import Config
from ppo_jax.host.devices.mesh import Layout
from ppo_jax.schedules import Progress
from ppo_jax.state import Population

STEPS_OF_A_CALL = {"cpu": 2**20}
"""By platform, those learned from, once for each epoch. XLA keeps up to 0.1 KiB of each
(`SlinkyThreadPool` has a task of 2 KiB for a product in threads)."""

UPDATES_OF_A_CALL = 4
"""At least: what a call works in is memory that the system hands out anew."""

ROOM = 256
"""Updates of all members together for which a call has room at least.

By default a phase has no more of them, so that a longer run needs no other program."""


def length(config: Config) -> int:
    """Updates of a phase: as many as wished, or fewer, so that generations end one."""
    return dividing(config, 0 if config.pbt is None else config.pbt.interval)


def dividing(config: Config, interval: int) -> int:
    """Updates of a phase: as many as wished, or fewer, so that an interval ends one.

    By default they are 1 % of the run, and not so many that the host looks late.

    Args:
        config: The experiment.
        interval: Updates; 0: there is none.
    """
    share = min(config.num_updates // 100, ROOM)
    wanted = config.phase_updates or max(1, share)
    if not interval:
        return wanted
    return max(n for n in range(1, wanted + 1) if interval % n == 0)


def at_once(config: Config, num_members: int) -> int:
    """Updates of a call, if there are so many members: those of a phase, or fewer."""
    learned = num_members * config.steps_per_update * config.num_epochs
    most = STEPS_OF_A_CALL.get(jax.default_backend(), sys.maxsize) // learned
    return min(length(config), max(UPDATES_OF_A_CALL, most))


def room(config: Config, num_members: int) -> int:
    """Updates for which a call has room: those that it does, or more.

    A power of two, and the same for all short ones: a program knows this number and no
    other of how long a run and its phases are, and so is kept for many of them.
    """
    least = max(at_once(config, num_members), ROOM // num_members)
    return 1 << (least - 1).bit_length()


def advance(
    config: Config, layout: Layout, population: Population, done: int, until: int
) -> tuple[Population, dict[str, np.ndarray]]:
    """Trains members from so many updates to so many.

    Returns:
        The members, and metrics of these updates, `[N, P]`.
    """
    size, calls = population.fitness.size, []
    most, ahead = at_once(config, size), np.arange(room(config, size))
    for begun in range(done, until, most):
        count = min(most, until - begun)
        progress = Progress.of(begun + ahead, config.num_updates)
        population, said = layout.advance(population, progress, np.int32(count))
        calls.append(jax.tree.map(lambda x, n=count: x[:n], layout.fetch(said)))
    history = jax.tree.map(lambda *each: np.concatenate(each), *calls)
    return population, history.unpack()

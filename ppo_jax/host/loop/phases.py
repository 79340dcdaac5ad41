"""Phases of updates, between which the host reads metrics, evaluates and saves.

On most platforms a phase is one call of a program. On a CPU whose cores are all busy
with devices, the tasks by which XLA shares products among threads stay in memory until
a call returns. So there a phase is divided into calls that keep this memory small.
"""

import sys
from typing import NamedTuple, Self

import jax
import numpy as np

from ppo_jax.config import Config
from ppo_jax.host.devices.mesh import Layout
from ppo_jax.schedules import Progress
from ppo_jax.state import Population

STEPS_OF_A_CALL = {"cpu": 2**20}
"""Most steps that a call learns from, by platform, counted once for each epoch. XLA
keeps up to 0.1 KiB per step (`SlinkyThreadPool` has a task of 2 KiB for a product in
threads)."""

UPDATES_OF_A_CALL = 4
"""Least updates of a call, for which the system hands out working memory each time."""

ROOM = 256
"""Least updates for which a call has room, counted over all members together.

By default a phase has at most as many, so that a longer run needs no other program."""


class Rhythm(NamedTuple):
    """The updates at which phases end: multiples of an interval, and some between.

    An interval is divided into as few phases as keep none longer than wished. All have
    the same length, but for the last one, which may be shorter.

    >>> rhythm = Rhythm.of(Config("CartPole-v1", phase_updates=4), interval=7)
    >>> [rhythm.end(done) for done in (0, 3, 4, 7)]
    [4, 4, 7, 11]
    """

    length: int
    """Updates of a phase that is not shortened."""
    interval: int

    @classmethod
    def of(cls, config: Config, interval: int = 0) -> Self:
        """Returns the rhythm of an experiment.

        By default a phase is 1 % of the run, and not so long that the host looks late.

        Args:
            config: The experiment; generations of its population end an interval.
            interval: Updates between two changes of members by something else; 0: none.
        """
        share = min(config.num_updates // 100, ROOM)
        wanted = config.phase_updates or max(1, share)
        if config.pbt is not None:
            interval = config.pbt.interval
        interval = interval or wanted
        return cls(_ceil(interval, _ceil(interval, wanted)), interval)

    def end(self, done: int) -> int:
        """Returns the updates done when the phase that begins after `done` ends."""
        within = done % self.interval
        length = (within // self.length + 1) * self.length
        return done - within + min(length, self.interval)

    def count(self, done: int) -> int:
        """Returns how many phases have ended after `done` updates."""
        intervals, within = divmod(done, self.interval)
        each = _ceil(self.interval, self.length)
        return intervals * each + within // self.length


def length(config: Config) -> int:
    """Returns how many updates a phase of an experiment has that is not shortened."""
    return Rhythm.of(config).length


def at_once(config: Config, num_members: int) -> int:
    """Returns the updates of a call for so many members, at most those of a phase."""
    learned = num_members * config.steps_per_update * config.num_epochs
    most = STEPS_OF_A_CALL.get(jax.default_backend(), sys.maxsize) // learned
    return min(length(config), max(UPDATES_OF_A_CALL, most))


def room(config: Config, num_members: int) -> int:
    """Returns the updates for which a call has room: those that it does, or more.

    It is a power of two, and the same for all short calls. A program depends on this
    number, but not on the lengths of a run and its phases, so many runs share it.
    """
    least = max(at_once(config, num_members), ROOM // num_members)
    return 1 << (least - 1).bit_length()


def advance(
    config: Config, layout: Layout, population: Population, done: int, until: int
) -> tuple[Population, dict[str, np.ndarray]]:
    """Trains members from `done` updates to `until` updates.

    Returns:
        The members, and metrics of these updates, `[N, P]`.
    """
    size, calls = population.fitness.size, []
    most, ahead = at_once(config, size), np.arange(room(config, size))
    for begun in range(done, until, most):
        count = min(most, until - begun)
        progress = Progress.of(begun + ahead, config.num_updates)
        population, metrics = layout.advance(population, progress, np.int32(count))
        calls.append(jax.tree.map(lambda x, n=count: x[:n], layout.fetch(metrics)))
    history = jax.tree.map(lambda *each: np.concatenate(each), *calls)
    return population, history.unpack()


def _ceil(number: int, divisor: int) -> int:
    return -(-number // divisor)

"""Saves of a run: with an evaluation, at its end, and every ten minutes."""

import math
import time

from ppo_jax.config import Config
from ppo_jax.host.loop.evaluation import best
from ppo_jax.host.metrics.alarms import Alarms
from ppo_jax.host.process import distributed
from ppo_jax.host.run_dir.description import describe
from ppo_jax.host.run_dir.recording import Memory
from ppo_jax.state import Population

SECONDS = 600.0
"""Seconds since a save after which a phase ends with one, evaluated or not."""


class Saves:
    """Saves a run between its phases.

    Args:
        config: The experiment.
        record: The record that keeps the run.
        alarms: Alarms of the members, whose streaks are saved.
        identity: Id of this run alone.
    """

    def __init__(self, config: Config, record: Memory, alarms: Alarms, identity: str):
        self._config, self._record = config, record
        self._alarms, self._id = alarms, identity
        self._saved = time.monotonic()

    def after(
        self, done: int, population: Population, evaluated: bool, ending: str
    ) -> None:
        """Saves a population after a phase if it is time for it.

        Args:
            done: Updates done.
            population: The members.
            evaluated: Whether the members were evaluated after this phase, so that
                their fitness is known.
            ending: Ending of the run after this phase; empty: it goes on.

        Raises:
            OSError: If the disk does not take the checkpoint.
        """
        late = time.monotonic() >= self._saved + SECONDS
        if not (evaluated or ending or distributed.any_of(late)):
            return
        meta = {
            "id": self._id,
            "config": describe(self._config),
            "lineage": self._record.family.packed,
            "streaks": self._alarms.streaks,
        }
        fitness = best(population) if evaluated else -math.inf
        self._record.save(done, population, fitness, meta)
        self._saved = time.monotonic()

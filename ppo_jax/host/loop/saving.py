"""When a run is saved: with an evaluation, at its end, and every ten minutes."""

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
"""After which a run is saved at the end of a phase, whether it is evaluated or not."""


class Saves:
    """Saves a run between its phases.

    Args:
        config: The experiment.
        record: Where the run is kept.
        alarms: Those of its members, whose streaks are saved.
        identity: Of this run and no other one.
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
            done: Updates.
            population: The members.
            evaluated: Whether they were evaluated after this phase, so that it is known
                how fit they are.
            ending: How the run ends after this phase, or nothing.

        Raises:
            OSError: If the disk does not take it.
        """
        late = time.monotonic() >= self._saved + SECONDS
        if not (evaluated or ending or distributed.any_of(late)):
            return
        meta = {
            "id": self._id,
            "config": describe(self._config),
            "lineage": self._record.family.lines,
            "streaks": self._alarms.streaks,
        }
        fitness = best(population) if evaluated else -math.inf
        self._record.save(done, population, fitness, meta)
        self._saved = time.monotonic()

"""Populations within folds: each fold, seed and setting has its own.

The members of all of them are trained side by side, in order, `[A · K]` of `[A, K]`. A
generation is that of `ppo.population` for each by itself, so that nobody copies anybody
of another fold, seed or setting.
"""

import dataclasses
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from ppo_jax.arrays import tree
from ppo_jax.backtests.selection import Selection
from ppo_jax.config import Config
from ppo_jax.host.devices import streams
from ppo_jax.host.run_dir import files, lineage
from ppo_jax.host.run_dir.experiment import ExperimentError
from ppo_jax.pbt import PBT
from ppo_jax.ppo import population as populations
from ppo_jax.state import Population

KEPT = "generations.jsonl"

_evolve = jax.jit(jax.vmap(populations.evolve, in_axes=(None, 0, 0)))


class Evolution:
    """Evolves populations by what their members earn on their validation alone.

    It is given the members before every phase (`training.train`'s `steer`), once they
    have been selected from. A generation is a line of a file, as in a lineage. A run
    that is resumed forgets those that come after its checkpoint, and repeats them.

    Args:
        config: The experiment of all populations.
        seeds: One per population.
        selection: Says how fit members are.
        home: The directory of their run.
    """

    def __init__(
        self, config: Config, seeds: Sequence[int], selection: Selection, home: Path
    ):
        self._config, self._seeds, self._selection = config, seeds, selection
        self._path = home / KEPT
        self._lines = files.rows(self._path) if self._path.exists() else []

    def __call__(self, population: Population, done: int) -> Population:
        """The members after so many updates: evolved, if it is time."""
        population = self._selection(population, done)
        pbt = self._config.pbt
        if pbt is None or done % pbt.interval or done >= self._config.num_updates:
            return population
        if done:
            return self._evolved(pbt, population, done)
        numbers = jax.device_get(pbt.space.read(population.runs.learner.config))
        first = lineage.beginning(population.fitness.size, numbers)
        self._keep([first | {"waited": [0] * len(self._seeds)}])
        return population

    def _evolved(self, pbt: PBT, population: Population, done: int) -> Population:
        known = [line for line in self._lines if line["update"] < done]
        if not known:
            raise ExperimentError(f"{self._path}: is missing; nobody can go on without")
        size = pbt.size
        keys = [streams.generation(seed, done, size) for seed in self._seeds]
        apart = Population(
            runs=_apart(population.runs, size),
            fitness=_apart(jnp.float32(self._selection.fitness), size),
            waited=jnp.int32(known[-1]["waited"]),
        )
        apart, generation = _evolve(pbt, apart, jnp.stack(keys))
        first = size * jnp.arange(len(keys))[:, None]
        generation = generation._replace(parent=first + generation.parent)
        line = lineage.line(done, jax.tree.map(jnp.ravel, generation))
        self._keep([*known, line | {"waited": np.asarray(apart.waited).tolist()}])
        return dataclasses.replace(population, runs=tree.merge_leading(apart.runs))

    def _keep(self, lines: list[dict[str, Any]]) -> None:
        self._lines = lines
        files.write(self._path, "".join(json.dumps(line) + "\n" for line in lines))


def _apart(members: Any, size: int) -> Any:
    """Members by population, `[A · K, ...]` to `[A, K, ...]`."""
    return jax.tree.map(lambda x: x.reshape(-1, size, *x.shape[1:]), members)

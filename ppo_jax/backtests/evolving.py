"""Populations within folds: each fold, seed and setting has its own.

The members of all populations are trained side by side, in order, `[A · K]` of
`[A, K]`. `ppo.population` evolves each population by itself, so that no member copies
one of another fold, seed or setting.
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
from ppo_jax.backtests import selection
from ppo_jax.backtests.selection import Selection
from ppo_jax.config import Config
from ppo_jax.host.devices import streams
from ppo_jax.host.run_dir import files, lineage
from ppo_jax.host.run_dir.experiment import ExperimentError
from ppo_jax.pbt import PBT
from ppo_jax.pbt.select import require_members
from ppo_jax.ppo import population as populations
from ppo_jax.state import Population

KEPT = "generations.jsonl"

_evolve = jax.jit(jax.vmap(populations.evolve, in_axes=(None, 0, 0)))


class Evolution:
    """Evolution of populations by the earnings of members on validation alone.

    It is given the members before every phase (`training.train`'s `steer`), and shows
    them to the selection first. A generation is a line of a file, as in a lineage. A
    run that is resumed forgets generations after its checkpoint, and repeats them.

    Args:
        config: The experiment of all populations.
        seeds: One seed per population.
        selection: Measures the fitness of members.
        home: The directory of their run.
    """

    def __init__(
        self, config: Config, seeds: Sequence[int], selection: Selection, home: Path
    ):
        self._config, self._seeds, self._selection = config, seeds, selection
        self._path = home / KEPT
        self._lines = files.rows(self._path)
        for number, line in enumerate(self._lines, start=1):
            waited = np.shape(line.get("waited", ())) == (len(seeds),)
            if not (waited and isinstance(line.get("update"), int)):
                raise self._lost(f"line {number} is no generation")

    def __call__(self, population: Population, done: int) -> Population:
        """Returns the members after `done` updates, evolved if it is time."""
        population = self._selection(population, done)
        pbt = self._config.pbt
        if pbt is None:
            return population
        self._lines = [line for line in self._lines if line["update"] < done]
        if done and not self._lines:
            raise self._lost("is missing")
        if done % pbt.interval or done >= self._config.num_updates:
            return population
        if done:
            return self._evolved(pbt, population, done)
        numbers = jax.device_get(pbt.space.read(population.runs.learner.config))
        first = lineage.beginning(population.fitness.size, numbers)
        self._keep([first | {"waited": [0] * len(self._seeds)}])
        return population

    def _evolved(self, pbt: PBT, population: Population, done: int) -> Population:
        size = pbt.size
        keys = [streams.generation(seed, done, size) for seed in self._seeds]
        apart = Population(
            runs=_apart(population.runs, size),
            fitness=_apart(jnp.float32(self._selection.fitness), size),
            waited=jnp.int32(self._lines[-1]["waited"]),
        )
        apart, generation = _evolve(pbt, apart, jnp.stack(keys))
        require_members(pbt.selector, np.asarray(generation.parent))
        first = size * jnp.arange(len(keys))[:, None]
        generation = generation._replace(parent=first + generation.parent)
        line = lineage.line(done, jax.tree.map(jnp.ravel, generation))
        self._keep([*self._lines, line | {"waited": np.asarray(apart.waited).tolist()}])
        return dataclasses.replace(population, runs=tree.merge_leading(apart.runs))

    def _lost(self, how: str) -> ExperimentError:
        return selection.lost(self._path, how)

    def _keep(self, lines: list[dict[str, Any]]) -> None:
        self._lines = lines
        files.write(self._path, "".join(json.dumps(line) + "\n" for line in lines))


def _apart(members: Any, size: int) -> Any:
    """Splits members by population, `[A · K, ...]` to `[A, K, ...]`."""
    return jax.tree.map(lambda x: x.reshape(-1, size, *x.shape[1:]), members)

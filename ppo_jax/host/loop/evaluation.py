"""Evaluations of a run: whole episodes, their statistics, and the fittest member."""

import dataclasses
import math
from contextlib import closing
from typing import Any

import numpy as np

from ppo_jax.config import Config
from ppo_jax.host.devices import streams
from ppo_jax.host.devices.mesh import Layout
from ppo_jax.host.devices.simulation import on_one_device
from ppo_jax.host.metrics.members import each_of, fittest, said_by_each
from ppo_jax.host.metrics.rows import HOSTED
from ppo_jax.host.run_dir.experiment import ExperimentError
from ppo_jax.pbt import Maximize
from ppo_jax.ppo import episodes
from ppo_jax.state import Population

SAID = dict.fromkeys((row.name for row in HOSTED if row.name.startswith("eval/")), 0.0)
"""Metrics that an evaluation adds to those of a member, for their names."""


def evaluate(
    population: Population,
    seed: int,
    update: int,
    num_episodes: int,
    deterministic: bool = True,
    layout: Layout | None = None,
) -> tuple[np.ndarray, np.ndarray]:
    """Plays whole episodes, with keys that training never sees.

    Args:
        population: The members.
        seed: Seed of the episodes; training takes that of the experiment.
        update: Updates that the members have done.
        num_episodes: Episodes that each member plays.
        deterministic: Whether members take the most likely action instead of a sample.
        layout: Layout of the population; None: on one device.

    Returns:
        Returns of the episodes `[P, num_episodes]`, from the same starts for all
        members, and whether each episode came to its end.
    """
    learners, how = population.runs.learner, (num_episodes, deterministic)
    if layout is None:
        with closing(on_one_device(learners.config)) as layout:
            return evaluate(population, seed, update, *how, layout)
    key = streams.evaluation(seed, update)
    return layout.fetch(layout.run_episodes(learners, key, *how))


def rate(
    config: Config,
    layout: Layout,
    population: Population,
    done: int,
    members: list[dict[str, float]],
) -> Population:
    """Evaluates all members, adds the results to their metrics, and sets fitness."""
    how = config.eval_episodes, not config.eval_sample
    returns, ended = evaluate(population, config.seed, done, *how, layout)
    fitness = Maximize() if config.pbt is None else config.pbt.fitness
    said = each_of(_evaluation(returns, ended), len(returns))
    for metrics, added in zip(members, said, strict=True):
        metrics |= added
    try:
        scores = np.array([fitness(metrics) for metrics in members], np.float32)
    except ValueError as error:
        raise ExperimentError(f"Config.pbt.fitness: {error}") from error
    return dataclasses.replace(population, fitness=layout.put(scores))


def require_fitness(config: Config) -> None:
    """Checks that members have the metric that a population selects them by.

    Raises:
        ExperimentError: If they do not; the message names the closest metric.
    """
    if config.pbt is None or config.pbt.fitness.metric in SAID:
        return
    try:
        config.pbt.fitness.require_in(said_by_each(config) | SAID)
    except ValueError as error:
        raise ExperimentError(f"Config.pbt.fitness: {error}") from error


def samples(config: Config, asked: bool | None) -> bool:
    """Returns whether actions are sampled: as `asked`; if None, as in evaluations."""
    return config.eval_sample if asked is None else asked


def fitness_of(population: Population) -> np.ndarray:
    """Returns the fitness of all members, `[P]`."""
    return np.asarray(population.fitness)


def best(population: Population) -> float:
    """Returns the greatest finite fitness; −∞ if there is none."""
    fitness = fitness_of(population)
    member = fittest(fitness)
    return -math.inf if member is None else float(fitness[member])


def _evaluation(returns: np.ndarray, ended: np.ndarray) -> dict[str, Any]:
    """Returns what an evaluation says of members, given `[P, episodes]` of each."""
    figures = episodes.summarize(returns)
    count = figures.pop("episodes")
    return {f"eval/{name}_reward": figure for name, figure in figures.items()} | {
        "eval/episodes": count,
        "eval/unfinished_episodes": np.sum(~ended, axis=1),
    }

"""A run on the host: phases, evaluations, checkpoints, logs."""

import dataclasses
import functools
import math
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from ppo_jax import component, episodes
from ppo_jax.alerts import Alarms
from ppo_jax.checkpoint import Checkpointer
from ppo_jax.config import Config
from ppo_jax.console import Console
from ppo_jax.experiment import ExperimentError, describe, differences
from ppo_jax.interrupt import Interrupt
from ppo_jax.logger import Logger
from ppo_jax.metrics import summarize
from ppo_jax.pbt import Maximize, lineage, report
from ppo_jax.pbt import population as populations
from ppo_jax.pbt.lineage import Lineage
from ppo_jax.state import Population
from ppo_jax.types import Key
from ppo_jax.watchdog import Watchdog

EVOLUTION = 2**32 - 1
"""Sets the keys of generations apart from those of evaluations; no update's number."""


Beginning = tuple[Population, int, list[dict[str, Any]]]
"""A population, the updates it has done, and the lines of its lineage."""


def start(config: Config) -> Population:
    """The population of an experiment before its first update."""
    keys = member_keys(config.seed, config.num_members)
    if config.pbt is not None:
        space = config.pbt.space
        numbers = jax.vmap(space.sample)(generation_keys(config, 0))
        config = space.write(config, numbers)
    return populations.init(config, keys)


def member_keys(seed: int, count: int = 1) -> Key:
    """The keys of an experiment's members, `[count]`."""
    key = jax.random.fold_in(jax.random.key(seed), 0)
    return jax.random.split(key, count)


def as_it_is(population: Population, done: int) -> Population:
    """Leaves a population to itself."""
    del done
    return population


def train(
    config: Config,
    run_dir: Path,
    resume: bool,
    hint: str = "",
    begin: Callable[[Config], Population] = start,
    steer: Callable[[Population, int], Population] = as_it_is,
) -> str:
    """Trains to the end of the budget, or until something stops it.

    A row is logged before its checkpoint is saved: what a resumed run finds in the log
    reaches at least as far as the checkpoint, and is cut back to it.

    Args:
        config: The experiment.
        run_dir: Where checkpoints and logs go.
        resume: Whether to go on from the newest checkpoint.
        hint: How to go on with the run, for whoever ends it or finds it ended.
        begin: Makes the members before their first update.
        steer: What becomes of the members before each phase, after so many updates.

    Returns:
        How it ended: `finished`, `interrupted` or `failed`.

    Raises:
        CheckpointError: If no checkpoint can be restored.
        ExperimentError: If there is no metric to select for.
        OSError: If the disk does not take a checkpoint or a log.
    """
    with (
        closing(Console()) as console,
        Interrupt(console) as interrupt,
        Watchdog(config.stall_seconds, console, hint) as watchdog,
        closing(Checkpointer(run_dir)) as checkpoints,
    ):
        console.say(f"training on {_device()}, in {run_dir}")
        beginning = _beginning(config, begin(config))
        if resume:
            beginning = _resume(config, checkpoints, beginning, console)
        population, done, past = beginning
        family = Lineage(run_dir, past)
        steps = config.steps_per_update
        console.start(config.num_updates * steps, done * steps)
        ending = "finished" if done >= config.num_updates else ""
        with closing(Logger(run_dir, done * steps)) as logger:
            alarms = Alarms(logger.rows)
            while not ending:
                watchdog.heard()
                population = steer(population, done)
                population, done, members, speed = _phase(config, population, done)
                watchdog.heard()
                ending = _ending(config, done, members, interrupt)
                due = ending == "finished" or _is_evaluated(config, done)
                if due or _evolves(config, done):
                    population = _rate(config, population, done, members)
                metrics = report.over_members(members, _fitness(population)) | speed
                if _evolves(config, done):
                    population, said = _evolve(config, population, done, family)
                    metrics |= said
                flags, lines = alarms.check(metrics)
                metrics |= flags
                for line in lines:
                    console.say(line)
                logger.write(done * steps, metrics)
                console.update(done * steps, metrics)
                if due or ending:
                    fitness = _best(population) if due else -math.inf
                    meta = {"config": describe(config), "lineage": family.lines}
                    checkpoints.save(done, population, fitness, meta)
    return ending


def evaluate(
    population: Population,
    config: Config,
    update: int,
    num_episodes: int,
    deterministic: bool = True,
) -> tuple[np.ndarray, np.ndarray]:
    """Returns of whole episodes, with keys that training never sees.

    Returns:
        Returns `[P, num_episodes]`, of the same starts for all members, and whether
        each episode came to its end.
    """
    key = jax.random.fold_in(jax.random.key(config.seed), 1 + update)
    total, ended = _run_episodes(
        population.runs.learner, key, num_episodes, deterministic
    )
    return np.asarray(total), np.asarray(ended)


@functools.partial(jax.jit, static_argnums=(2, 3))
def _run_episodes(
    learners: Any, key: Any, num_episodes: int, deterministic: bool
) -> Any:
    return jax.vmap(
        lambda one: episodes.run_episodes(one, key, num_episodes, deterministic)
    )(learners)


def _device() -> str:
    device = jax.devices()[0]
    return f"{device.platform} ({device.device_kind})"


def _beginning(config: Config, population: Population) -> Beginning:
    """Before the first update; a population has the first line of its lineage."""
    if config.pbt is None:
        return population, 0, []
    numbers = config.pbt.space.read(population.runs.learner.config)
    return population, 0, [lineage.beginning(config.pbt.size, numbers)]


def _resume(
    config: Config, checkpoints: Checkpointer, fresh: Beginning, console: Console
) -> Beginning:
    """The newest checkpoint, with the numbers that the run was given anew."""
    if checkpoints.empty:
        checkpoints.rewind(0)
        console.say("stopped before its first checkpoint; starting again")
        return fresh
    done, population, meta = checkpoints.restore(fresh[0])
    checkpoints.rewind(done)
    changed = differences(meta["config"], describe(config))
    for name, change in changed.items():
        console.say(f"resuming with another {name}: {change}")
    console.say(f"resuming after update {done} of {config.num_updates}")
    given = component.numbers(config)
    anew = {path: given[path] for path in changed.keys() & given.keys()}
    return populations.with_numbers(population, anew), done, meta["lineage"]


def _phase(
    config: Config, population: Population, done: int
) -> tuple[Population, int, list[dict[str, float]], dict[str, float]]:
    """Advances to the next multiple of the phase length, or to the end.

    Returns:
        The population, the updates done, and metrics: of each member, and of the clock.
    """
    length = phase_length(config)
    until = min((done // length + 1) * length, config.num_updates)
    progress = (done + np.arange(length)) / config.num_updates
    began = time.perf_counter()
    population, history = populations.advance(
        population, jnp.asarray(progress, jnp.float32), jnp.int32(until - done)
    )
    history = jax.device_get(history)
    seconds = time.perf_counter() - began
    steps, size = config.steps_per_update, population.fitness.size
    members = [
        summarize({k: v[: until - done, member] for k, v in history.items()})
        for member in range(size)
    ]
    speed = {
        "time/fps": (until - done) * steps * size / seconds,
        "time/iterations": until,
        "time/total_timesteps": until * steps,
    }
    return population, until, members, speed


def phase_length(config: Config) -> int:
    """Updates of a phase: as many as wished, or fewer, so that generations end one."""
    wanted = config.phase_updates or max(1, config.num_updates // 100)
    if config.pbt is None:
        return wanted
    interval = config.pbt.interval
    return max(n for n in range(1, wanted + 1) if interval % n == 0)


def _evolves(config: Config, done: int) -> bool:
    return config.pbt is not None and done % config.pbt.interval == 0


def _is_evaluated(config: Config, done: int) -> bool:
    return done // phase_length(config) % config.eval_phases == 0


def _ending(
    config: Config, done: int, members: list[dict[str, float]], interrupt: Interrupt
) -> str:
    """How the run ends after this phase, or nothing; one member can go on for all."""
    streaks = [member["error/failure_streak"] for member in members]
    if min(streaks) >= config.max_failures:
        return "failed"
    if done >= config.num_updates:
        return "finished"
    return "interrupted" if interrupt.asked else ""


def _rate(
    config: Config, population: Population, done: int, members: list[dict[str, float]]
) -> Population:
    """Evaluates all members, adds to their metrics, and says how fit they are."""
    returns, ended = evaluate(population, config, done, config.eval_episodes)
    fitness = Maximize() if config.pbt is None else config.pbt.fitness
    for metrics, total, over in zip(members, returns, ended, strict=True):
        metrics |= _evaluation(total, over)
    try:
        scores = np.array([fitness(metrics) for metrics in members], np.float32)
    except ValueError as error:
        raise ExperimentError(f"Config.pbt.fitness: {error}") from error
    return dataclasses.replace(population, fitness=jnp.asarray(scores))


def _fitness(population: Population) -> np.ndarray:
    return np.asarray(population.fitness)


def _best(population: Population) -> float:
    fitness = _fitness(population)
    best = report.fittest(fitness)
    return -math.inf if best is None else float(fitness[best])


def _evolve(
    config: Config, population: Population, done: int, family: Lineage
) -> tuple[Population, dict[str, float]]:
    """A generation, its line in the lineage, and its metrics."""
    keys = generation_keys(config, done)
    population, generation = populations.evolve(config.pbt, population, keys)
    generation = jax.device_get(generation)
    family.append(lineage.line(done, generation))
    return population, report.generation_metrics(generation) | {
        "pbt/exploitation_count": family.count("copied"),
        "pbt/exploration_count": family.count("explored"),
        "pbt/failed_ready_checks": int(population.waited),
    }


def generation_keys(config: Config, done: int) -> Key:
    """The keys of a generation after so many updates, `[P]`."""
    key = jax.random.fold_in(jax.random.key(config.seed), EVOLUTION)
    return jax.random.split(jax.random.fold_in(key, done), config.num_members)


def _evaluation(returns: np.ndarray, ended: np.ndarray) -> dict[str, float]:
    figures = episodes.summarize(returns)
    count = figures.pop("episodes")
    return {f"eval/{name}_reward": figure for name, figure in figures.items()} | {
        "eval/episodes": count,
        "eval/unfinished_episodes": np.sum(~ended),
    }

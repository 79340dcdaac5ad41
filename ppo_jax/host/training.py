"""A run on the host: phases, evaluations, checkpoints, logs."""

import math
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any, NamedTuple

import jax
import numpy as np

from ppo_jax.component import former, numbers
from ppo_jax.config import Config
from ppo_jax.host import distributed, lineage, streams
from ppo_jax.host.alarms import Alarms
from ppo_jax.host.catalogue import summarize
from ppo_jax.host.checkpoint import Checkpointer
from ppo_jax.host.console import NORMAL, Console, Verbosity
from ppo_jax.host.description import as_now, describe, differences, former_names
from ppo_jax.host.evaluation import best, fitness_of, rate
from ppo_jax.host.interrupt import Interrupt
from ppo_jax.host.lineage import Lineage
from ppo_jax.host.logger import Logger
from ppo_jax.host.members import generation_metrics, over_members
from ppo_jax.host.mesh import Layout
from ppo_jax.host.readiness import ready
from ppo_jax.host.stopwatch import Stopwatch
from ppo_jax.host.watchdog import Watchdog
from ppo_jax.metrics.own import rows_of
from ppo_jax.ppo import population as populations
from ppo_jax.schedules import Progress
from ppo_jax.state import Population


class StartState(NamedTuple):
    """What a run begins with, or goes on with."""

    population: Population
    done: int
    """Updates."""
    lineage: list[dict[str, Any]]
    streaks: dict[str, list[int]]
    """Of alerts."""
    names: former.Names
    """How the log calls items of tuples, if a version before began it."""


def start(config: Config) -> Population:
    """The population of an experiment before its first update."""
    keys = streams.members(config.seed, config.num_members)
    if config.pbt is not None:
        space = config.pbt.space
        first = streams.generation(config.seed, 0, config.num_members)
        config = space.write(config, jax.vmap(space.sample)(first))
    return populations.init(config, keys)


def train(
    config: Config,
    run_dir: Path,
    resume: bool,
    hint: str = "",
    verbosity: Verbosity = NORMAL,
    begin: Callable[[Config], Population] = start,
    steer: Callable[[Population, int], Population] = lambda members, done: members,
) -> str:
    """Trains to the end of the budget, or until something stops it.

    A row is logged before its checkpoint is saved: what a resumed run finds in the log
    reaches at least as far as the checkpoint, and is cut back to it.

    Args:
        config: The experiment.
        run_dir: Where checkpoints and logs go.
        resume: Whether to go on from the newest checkpoint.
        hint: How to go on with the run, for whoever ends it or finds it ended.
        verbosity: How much to show.
        begin: Makes the members before their first update.
        steer: What becomes of the members before each phase, after so many updates.

    Returns:
        How it ended: `finished`, `interrupted` or `failed`.

    Raises:
        CheckpointError: If no checkpoint can be restored.
        ExperimentError: If there is no metric to select for.
        JobError: If the processes of a job cannot share the members.
        RunError: If the disk does not take a checkpoint or a log.
    """
    with (
        distributed.together(hint),
        closing(Console(verbosity, mute=not distributed.is_first())) as console,
        Interrupt(console) as interrupt,
        Watchdog(config.stall_seconds, console, hint) as watchdog,
        closing(Checkpointer(run_dir)) as checkpoints,
        distributed.together(hint),
        distributed.folder(run_dir) as folder,
    ):
        began = time.time()
        with Stopwatch() as watch:
            layout, population = ready(
                config, lambda: begin(config), phase_length(config)
            )
        console.note(f"training on {layout}, in {run_dir}")
        begun = _beginning(config, layout, population)
        if resume:
            begun = _resume(config, layout, checkpoints, begun, console)
        population, done = begun.population, begun.done
        family, alarms = Lineage(folder, begun.lineage), Alarms(begun.streaks)
        steps = config.steps_per_update
        console.start(config.num_updates * steps, done * steps)
        ending = "finished" if done >= config.num_updates else ""
        logger = Logger(folder, done * steps, begun.names, rows_of(config), began)
        with closing(logger):
            while not ending:
                watchdog.heard()
                population = layout.place(steer(population, done))
                population, done, members, speed = _phase(
                    config, layout, population, done
                )
                watchdog.heard()
                ending = _ending(config, done, members, interrupt)
                due = ending == "finished" or _is_evaluated(config, done)
                if due or _evolves(config, done):
                    population = rate(config, layout, population, done, members)
                speed["time/compiling"] += watch.compiling
                watch.compiling = 0.0  # It is said once.
                metrics = over_members(members, fitness_of(population)) | speed
                if _evolves(config, done):
                    population, said = _evolve(config, layout, population, done, family)
                    metrics |= said
                flags, lines = alarms.check(members)
                metrics |= flags
                for line in lines:
                    console.say(line)
                logger.write(done * steps, metrics)
                console.update(done * steps, metrics)
                if due or ending:
                    fitness = best(population) if due else -math.inf
                    meta = {"config": describe(config), "lineage": family.lines}
                    meta |= {"streaks": alarms.streaks}
                    checkpoints.save(done, population, fitness, meta)
    return ending


def _beginning(config: Config, layout: Layout, population: Population) -> StartState:
    """Before the first update; a population has the first line of its lineage."""
    if config.pbt is None:
        return StartState(population, 0, [], {}, {})
    searched = layout.fetch(config.pbt.space.read(population.runs.learner.config))
    first = lineage.beginning(config.pbt.size, searched)
    return StartState(population, 0, [first], {}, {})


def _resume(
    config: Config,
    layout: Layout,
    checkpoints: Checkpointer,
    fresh: StartState,
    console: Console,
) -> StartState:
    """The newest checkpoint, with the numbers that the run was given anew."""
    if checkpoints.empty:
        checkpoints.rewind(0)
        console.note("stopped before its first checkpoint; starting again")
        return fresh
    done, population, meta = checkpoints.restore(fresh.population)
    checkpoints.rewind(done)
    names = former_names(meta["config"])
    changed = differences(as_now(meta["config"]), describe(config))
    for name, change in changed.items():
        console.note(f"resuming with another {name}: {change}")
    if done < config.num_updates:
        console.note(f"resuming after update {done} of {config.num_updates}")
    else:
        console.say(f"{done} updates are done; nothing is left of {config.num_updates}")
    given = numbers(config)
    anew = {path: given[path] for path in changed.keys() & given.keys()}
    population = layout.place(populations.with_numbers(population, anew))
    generations = former.translated(meta["lineage"], names)
    # A run from before streaks were saved has none.
    streaks = meta.get("streaks", {})
    return StartState(population, done, generations, streaks, names)


def _phase(
    config: Config, layout: Layout, population: Population, done: int
) -> tuple[Population, int, list[dict[str, float]], dict[str, float]]:
    """Advances to the next multiple of the phase length, or to the end.

    Returns:
        The population, the updates done, and metrics: of each member, and of the clock.
    """
    length = phase_length(config)
    until = min((done // length + 1) * length, config.num_updates)
    count = until - done
    progress = Progress.of(done + np.arange(length), config.num_updates)
    with Stopwatch() as watch:
        population, history = layout.advance(population, progress, np.int32(count))
        jax.block_until_ready(history)
    history = layout.fetch(history).unpack()
    steps, size = config.steps_per_update, population.fitness.size
    own = rows_of(config)
    members = [
        summarize({k: v[:count, member] for k, v in history.items()}, own)
        for member in range(size)
    ]
    speed = {
        "time/fps": count * steps * size / watch.running,
        "time/compiling": watch.compiling,
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
    return "interrupted" if distributed.any_of(interrupt.asked) else ""


def _evolve(
    config: Config, layout: Layout, population: Population, done: int, family: Lineage
) -> tuple[Population, dict[str, float]]:
    """A generation, its line in the lineage, and its metrics."""
    keys = streams.generation(config.seed, done, config.num_members)
    population, generation = layout.evolve(config.pbt, population, keys)
    generation = layout.fetch(generation)
    family.append(lineage.line(done, generation))
    return population, generation_metrics(generation) | {
        "pbt/exploitation_count": family.count("copied"),
        "pbt/exploration_count": family.count("explored"),
        "pbt/failed_ready_checks": int(population.waited),
    }

"""A run on the host: phases, evaluations, checkpoints, logs."""

from collections.abc import Callable
from contextlib import closing
from typing import NamedTuple

import jax
from jax.typing import ArrayLike

from ppo_jax.arrays.keys import fused
from ppo_jax.config import Config
from ppo_jax.host.devices import streams
from ppo_jax.host.devices.mesh import Begin, Layout
from ppo_jax.host.loop import beginning, phases
from ppo_jax.host.loop.evaluation import fitness_of, rate
from ppo_jax.host.loop.phases import Rhythm
from ppo_jax.host.loop.readiness import ready
from ppo_jax.host.loop.saving import Saves
from ppo_jax.host.loop.sinks import Sinks
from ppo_jax.host.loop.stopping import Callback, Stop, deaf
from ppo_jax.host.loop.stopwatch import Stopwatch
from ppo_jax.host.metrics.alarms import Alarms
from ppo_jax.host.metrics.catalogue import summarize
from ppo_jax.host.metrics.members import each_of, generation_metrics, over_members
from ppo_jax.host.process import distributed
from ppo_jax.host.process.console import Console
from ppo_jax.host.process.interrupt import Interrupt
from ppo_jax.host.process.watchdog import Watchdog
from ppo_jax.host.run_dir import lineage
from ppo_jax.host.run_dir.lineage import Family
from ppo_jax.host.run_dir.recording import Memory, Past
from ppo_jax.metrics.own import rows_of
from ppo_jax.pbt.select import require_members
from ppo_jax.ppo import population as populations
from ppo_jax.state import Population


class Steer(NamedTuple):
    """Changes members from outside, between phases."""

    members: Callable[[Population, int], Population]
    """Function of the members and the updates done; returns the members of a phase."""
    interval: int = 0
    """Updates between two changes, which begin a phase each; 0: any phase may."""


class Phase(NamedTuple):
    """What a phase came to."""

    population: Population
    done: int
    """Updates of the run so far."""
    members: list[dict[str, float]]
    """Metrics of each member."""
    failing: float
    """The most updates in a row, up to one of this phase, without a step of anybody."""
    speed: dict[str, float]
    """Metrics of the clock."""


class Ended(NamedTuple):
    """Result of a run."""

    ending: str
    """`finished`, `stopped`, `interrupted` or `failed`. After all but `failed`, a run
    goes on with a larger budget or bound."""
    update: int
    population: Population
    layout: Layout
    """Layout of the population."""
    streaks: dict[str, list[int]]


def start(config: Config, seed: ArrayLike | None = None) -> Population:
    """Returns the population of an experiment before its first update.

    Args:
        config: The experiment.
        seed: Seed of all that is random; None: that of the experiment.
    """
    seed = config.seed if seed is None else seed
    keys = streams.members(seed, config.num_members)
    if config.pbt is not None:
        space = config.pbt.space
        first = streams.generation(seed, 0, config.num_members)
        config = space.write(config, jax.vmap(space.sample)(fused(first)))
    return populations.init(config, keys)


UNSTEERED = Steer(lambda population, done: population)
"""Leaves the members as they are."""


def train(
    config: Config,
    record: Memory,
    console: Console,
    hint: str = "",
    begin: Begin = start,
    steer: Steer = UNSTEERED,
    callback: Callback = deaf,
) -> Ended:
    """Trains to the end of the budget, or until something stops it.

    A row is logged before its checkpoint is saved. So the log that a resumed run finds
    reaches at least as far as the checkpoint, and is cut back to it. Sinks get a row
    after that, as they may take long.

    Args:
        config: The experiment.
        record: The record that keeps the run.
        console: Console that shows the run; closed at its end.
        hint: Text on how to continue the run, printed if an error or a stall ends it.
        begin: Makes the members before their first update.
        steer: Changes the members between phases.
        callback: Called after each phase.

    Raises:
        CheckpointError: If no checkpoint can be restored.
        ExperimentError: If there is no metric to select for.
        JobError: If the processes of a job cannot share the members.
        RunError: If the disk does not take a checkpoint or a log.
        BaseException: The error of the callback, once the run is saved.
    """
    own, stop = rows_of(config), Stop(config, callback, console)
    rhythm = Rhythm.of(config, steer.interval)
    with (
        distributed.together(hint),
        closing(console),
        Interrupt(console) as interrupt,
        Watchdog(config.stall_seconds, console, hint) as watchdog,
        record.opened(),
        distributed.together(hint),
    ):
        with Stopwatch() as watch:
            layout, population = ready(config, begin, record)
        console.note(f"training on {layout}, {record}")
        begun = beginning.begun(config, layout, population, record, console, begin)
        population, done, alarms = begun.population, begun.done, Alarms(begun.streaks)
        steps, saves = config.steps_per_update, Saves(config, record, alarms, begun.id)
        past = Past(done * steps, begun.lineage, begun.names, own)
        console.start(config.num_updates * steps, past.step)
        with (
            closing(layout),
            record.written(past),
            closing(Sinks(config, record, begun.id, past.step, console)) as sinks,
        ):
            ending = _already(config, layout, population, done)
            ending = ending or stop.before(record.rows.last)
            while not ending:
                watchdog.heard()
                population = _steered(steer, layout, population, done)
                phase = _phase(config, layout, population, done, rhythm.end(done))
                population, done, members, failing, speed = phase
                watchdog.heard()
                ending = _ending(config, done, failing, interrupt)
                due = ending == "finished" or _is_evaluated(config, rhythm, done)
                population, metrics = _selected(
                    config, layout, population, done, members, due, record.family
                )
                generation = metrics.pop("time/compiling", 0.0)
                speed["time/compiling"] += watch.compiling + generation
                watch.compiling = 0.0  # Only the first row reports it.
                metrics |= speed | _checked(alarms, members, console)
                row = record.rows.write(done * steps, metrics)
                console.update(done * steps, metrics)
                with watchdog.asleep():
                    asked = stop.after(row)
                ending = ending or asked
                saves.after(done, population, due, ending)
                sinks.write(row)
            record.ending.became(ending, stop.error)
    stop.reraise()
    return Ended(ending, done, population, layout, alarms.streaks)


def _already(config: Config, layout: Layout, population: Population, done: int) -> str:
    """Returns how a run has ended that has no updates left; empty: it goes on."""
    if done < config.num_updates:
        return ""
    streaks = layout.fetch(population.runs.counters.failure_streak)
    return "failed" if streaks.min() >= config.max_failures else "finished"


def _checked(
    alarms: Alarms, members: list[dict[str, float]], console: Console
) -> dict[str, float]:
    """Returns the flags of the alerts, and prints a line for each that begins."""
    flags, lines = alarms.check(members)
    for line in lines:
        console.say(line)
    return flags


def _steered(
    steer: Steer, layout: Layout, population: Population, done: int
) -> Population:
    """The members before a phase; those are placed that were not there before."""
    steered = steer.members(population, done)
    return population if steered is population else layout.place(steered)


def _phase(
    config: Config, layout: Layout, population: Population, done: int, until: int
) -> Phase:
    """Advances to the end of a phase, or to that of the run."""
    until = min(until, config.num_updates)
    with Stopwatch() as watch:
        population, history = phases.advance(config, layout, population, done, until)
    steps, size = config.steps_per_update, population.fitness.size
    members = each_of(summarize(history, rows_of(config)), size)
    speed = {
        "time/fps": (until - done) * steps * size / watch.running,
        "time/compiling": watch.compiling,
        "time/iterations": until,
        "time/total_timesteps": until * steps,
    }
    failing = float(history["error/failure_streak"].min(axis=1).max())
    return Phase(population, until, members, failing, speed)


def _evolves(config: Config, done: int) -> bool:
    return config.pbt is not None and done % config.pbt.interval == 0


def _is_evaluated(config: Config, rhythm: Rhythm, done: int) -> bool:
    return rhythm.count(done) % config.eval_phases == 0


def _ending(config: Config, done: int, failing: float, interrupt: Interrupt) -> str:
    """Returns the ending of the run after this phase; empty: it goes on.

    A run fails only if all members fail at once, as a single one can go on.
    """
    if failing >= config.max_failures:
        return "failed"
    if done >= config.num_updates:
        return "finished"
    return "interrupted" if distributed.any_of(interrupt.asked) else ""


def _selected(
    config: Config,
    layout: Layout,
    population: Population,
    done: int,
    members: list[dict[str, float]],
    due: bool,
    family: Family,
) -> tuple[Population, dict[str, float]]:
    """Evaluates and evolves the members when it is time; returns them and their row."""
    evolves = _evolves(config, done)
    if due or evolves:
        population = rate(config, layout, population, done, members)
    metrics = over_members(members, fitness_of(population))
    if not evolves:
        return population, metrics
    population, evolved = _evolve(config, layout, population, done, family)
    return population, metrics | evolved


def _evolve(
    config: Config, layout: Layout, population: Population, done: int, family: Family
) -> tuple[Population, dict[str, float]]:
    """Evolves the members, writes their lineage, and returns them and their metrics."""
    keys, pbt = streams.generation(config.seed, done, config.num_members), config.pbt
    assert pbt is not None
    with Stopwatch() as watch:
        population, generation = layout.evolve(pbt, population, keys)
        generation = layout.fetch(generation)
    require_members(pbt.selector, generation.parent)
    family.append(lineage.line(done, generation))
    return population, generation_metrics(generation) | {
        "time/compiling": watch.compiling,
        "pbt/exploitation_count": family.count("copied"),
        "pbt/exploration_count": family.count("explored"),
        "pbt/failed_ready_checks": int(population.waited),
    }

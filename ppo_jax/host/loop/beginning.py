"""The state that a run begins with, or goes on with."""

import secrets
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

import jax

from ppo_jax.component import former, numbers
from ppo_jax.config import Config
from ppo_jax.host.devices.mesh import Begin, Layout
from ppo_jax.host.process.console import Console
from ppo_jax.host.run_dir import lineage
from ppo_jax.host.run_dir.description import as_now, describe, differences, former_names
from ppo_jax.host.run_dir.recording import Memory, Saved
from ppo_jax.ppo import population as populations
from ppo_jax.state import Population

REMARKS = {
    "seed": "; evaluations and generations draw by it, rollouts go on as they did",
    "total_timesteps": "; schedules span all of it",
}
OWN = "; members keep their own"
"""Remarks on fields whose value has changed, for a run that goes on."""


class StartState(NamedTuple):
    """State that a run begins with, or goes on with."""

    population: Population
    done: int
    """Updates done."""
    lineage: list[dict[str, Any]]
    streaks: dict[str, list[int]]
    """Streaks of alerts, as in `Alarms`."""
    names: former.Names
    """Present names of tuples' items by their former names in the log."""
    id: str
    """Id of this run alone, which stays the same whenever the run goes on."""


def begun(
    config: Config,
    layout: Layout,
    population: Population,
    record: Memory,
    console: Console,
    begin: Begin,
) -> StartState:
    """Returns the state before the first update; in a resumed run, its checkpoint's.

    Args:
        config: The experiment.
        layout: The layout of its members.
        population: The members; in a resumed run blank ones, for shapes and devices.
        record: The record that keeps the run.
        console: Console for notes.
        begin: Function that makes the members before their first update.
    """
    if record.resumes:
        make = layout.making(begin, config)
        saved = record.restore(population, make)
        if saved is not None:
            return _resumed(config, layout, saved, console)
        console.note("stopped before its first checkpoint; starting again")
        population = make()
    generations = lineage_of(config, population, layout.fetch)
    return StartState(population, 0, generations, {}, {}, identity())


def identity() -> str:
    """Returns a new id that no other run has."""
    return secrets.token_hex(8)


def shared_numbers(config: Config, paths: Iterable[str]) -> dict[str, float]:
    """Returns the numbers of an experiment that are among these fields, by path.

    Those that a population searches are left out: they are each member's own.
    """
    given, own = numbers(config), searched(config)
    return {path: given[path] for path in paths if path in given and path not in own}


def searched(config: Config) -> Sequence[str]:
    """Returns the paths of the numbers that a population searches."""
    return () if config.pbt is None else config.pbt.space.paths


def lineage_of(
    config: Config,
    population: Population,
    fetch: Callable[[Any], Any] = jax.device_get,
) -> list[dict[str, Any]]:
    """Returns the lineage before the first update: a line, if numbers are searched."""
    if config.pbt is None:
        return []
    searched = fetch(config.pbt.space.read(population.runs.learner.config))
    return [lineage.beginning(config.pbt.size, searched)]


def _own(
    config: Config, paths: Iterable[str], population: Population, layout: Layout
) -> set[str]:
    """Returns the paths of those numbers that are each member's own.

    A population searches them; members of several experiments differ in them.
    """
    if config.pbt is not None:
        return {*searched(config)}
    known = numbers(population.runs.learner.config)
    values = layout.fetch({path: known[path] for path in paths if path in known})
    return {path for path, each in values.items() if (each != each[0]).any()}


def _resumed(
    config: Config, layout: Layout, saved: Saved, console: Console
) -> StartState:
    """Returns a checkpoint's state, with the numbers that have changed since."""
    done, population, meta = saved
    names = former_names(meta["config"])
    changed = differences(as_now(meta["config"]), describe(config))
    own_paths = _own(config, changed, population, layout)
    remarks = REMARKS | dict.fromkeys(own_paths, OWN)
    for name, change in changed.items():
        console.note(f"resuming with another {name}: {change}{remarks.get(name, '')}")
    if done < config.num_updates:
        console.note(f"resuming after update {done} of {config.num_updates}")
        if layout.anew:
            console.note(layout.anew)
    else:
        console.say(f"{done} updates are done; nothing is left of {config.num_updates}")
    shared = shared_numbers(config, changed.keys() - own_paths)
    population = layout.place(populations.with_numbers(population, shared))
    generations = former.translated(meta["lineage"], names)
    # Checkpoints of earlier versions lack these.
    streaks, own = meta.get("streaks", {}), meta.get("id") or identity()
    return StartState(population, done, generations, streaks, names, own)

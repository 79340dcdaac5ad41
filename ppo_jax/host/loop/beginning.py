"""What a run begins with, or goes on with."""

import secrets
from collections.abc import Callable
from typing import Any, NamedTuple

import jax

from ppo_jax.component import former, numbers
from ppo_jax.config import Config
from ppo_jax.host.devices.mesh import Layout
from ppo_jax.host.process.console import Console
from ppo_jax.host.run_dir import lineage
from ppo_jax.host.run_dir.description import as_now, describe, differences, former_names
from ppo_jax.host.run_dir.recording import Memory
from ppo_jax.ppo import population as populations
from ppo_jax.state import Population

SPANS = {"total_timesteps": "; schedules span all of it"}
"""What another value of a field means for a run that goes on with it."""


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
    id: str
    """Of this run and no other one, and the same whenever it goes on."""


def begun(
    config: Config,
    layout: Layout,
    population: Population,
    record: Memory,
    console: Console,
) -> StartState:
    """What the run begins with, or the newest checkpoint if it resumes."""
    generations = lineage_of(config, population, layout.fetch)
    fresh = StartState(population, 0, generations, {}, {}, identity())
    if not record.resumes:
        return fresh
    return _resume(config, layout, record, fresh, console)


def identity() -> str:
    """An id that no other run has."""
    return secrets.token_hex(8)


def lineage_of(
    config: Config,
    population: Population,
    fetch: Callable[[Any], Any] = jax.device_get,
) -> list[dict[str, Any]]:
    """The lineage before the first update: a line, if numbers are searched."""
    if config.pbt is None:
        return []
    searched = fetch(config.pbt.space.read(population.runs.learner.config))
    return [lineage.beginning(config.pbt.size, searched)]


def _resume(
    config: Config,
    layout: Layout,
    record: Memory,
    fresh: StartState,
    console: Console,
) -> StartState:
    """The newest checkpoint, with the numbers that the run was given anew."""
    saved = record.restore(fresh.population)
    if saved is None:
        console.note("stopped before its first checkpoint; starting again")
        return fresh
    done, population, meta = saved
    names = former_names(meta["config"])
    changed = differences(as_now(meta["config"]), describe(config))
    for name, change in changed.items():
        console.note(f"resuming with another {name}: {change}{SPANS.get(name, '')}")
    if done < config.num_updates:
        console.note(f"resuming after update {done} of {config.num_updates}")
        if layout.anew:
            console.note(layout.anew)
    else:
        console.say(f"{done} updates are done; nothing is left of {config.num_updates}")
    given = numbers(config)
    anew = {path: given[path] for path in changed.keys() & given.keys()}
    population = layout.place(populations.with_numbers(population, anew))
    generations = former.translated(meta["lineage"], names)
    # A run from before these were saved has none.
    streaks, own = meta.get("streaks", {}), meta.get("id", fresh.id)
    return StartState(population, done, generations, streaks, names, own)

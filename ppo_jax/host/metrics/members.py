"""Metrics of a population in one row."""

from collections.abc import Mapping
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from ppo_jax import component
from ppo_jax.config import Config
from ppo_jax.host.metrics.catalogue import summarize
from ppo_jax.host.metrics.rows import EVALUATIONS
from ppo_jax.metrics.own import rows_of
from ppo_jax.ppo import population as populations
from ppo_jax.ppo.population import Generation
from ppo_jax.schedules import Progress
from ppo_jax.types import Array, Key


def said_by_each(config: Config) -> dict[str, float]:
    """Returns a member's metrics of a phase, of which only the names mean anything.

    A trace of an update gives the names; those of evaluations are not among them.
    """
    keys = jax.eval_shape(lambda: jax.random.key(0)[None])
    one: Any = jax.ShapeDtypeStruct((1,), jnp.float32)
    given = component.program(config.outline), keys, Progress(one, one)
    history = jax.eval_shape(_said, *given)  # A structure is traced once.
    return summarize({name: np.zeros(1) for name in history}, rows_of(config))


def _said(config: Config, keys: Key, progress: Progress) -> dict[str, Array]:
    """Returns the metrics of members' first update."""
    return populations.advance(populations.init(config, keys), progress, 1)[1]


def each_of(together: Mapping[str, Any], size: int) -> list[dict[str, Any]]:
    """Returns the metrics of each member, given those of all, `[P]` or one for all.

    >>> each_of({"x": np.array([1.0, 2.0]), "count": 4}, size=2)
    [{'x': 1.0, 'count': 4}, {'x': 2.0, 'count': 4}]
    """
    columns = [np.broadcast_to(values, size).tolist() for values in together.values()]
    rows = zip(*columns, strict=True)
    return [dict(zip(together, row, strict=True)) for row in rows]


def over_members(
    members: list[dict[str, float]], fitness: np.ndarray
) -> dict[str, float]:
    """Returns one row for all members; for a single member, its metrics unchanged.

    Every metric has its median over the members whose value is finite, its quartiles
    under `q25/` and `q75/`, and the value of the fittest member under `best/`;
    `pbt/fittest` is the index of that member. `error/*` and `warn/*`, which show faults
    of any member, have the largest value instead. Returns of an evaluation also appear
    for every member, as `each/eval/mean_reward/0`.

    >>> rows = [{"x": 1.0}, {"x": 2.0}, {"x": 4.0}]
    >>> over_members(rows, np.array([3.0, np.nan, 2.0]))["x"]
    2.0
    >>> over_members(rows, np.array([3.0, np.nan, 2.0]))["best/x"]
    1.0
    """
    if len(members) == 1:
        return members[0]
    best = fittest(fitness)
    row = {} if best is None else {"pbt/fittest": best}
    for name in members[0]:
        values = np.array([member[name] for member in members], np.float64)
        finite = values[np.isfinite(values)]
        if name.startswith(("error/", "warn/")):
            row[name] = values.max()
        else:
            known = finite if finite.size else np.array([np.nan])
            ends = np.quantile(known, [0.5, 0.25, 0.75])
            row |= dict(zip((name, f"q25/{name}", f"q75/{name}"), ends, strict=True))
        if best is not None:
            row[f"best/{name}"] = values[best]
        if name in EVALUATIONS:
            row |= {f"each/{name}/{i}": value for i, value in enumerate(values)}
    return {name: float(value) for name, value in row.items()}


def fittest(fitness: np.ndarray) -> int | None:
    """Returns the member with the greatest finite fitness, or None.

    >>> fittest(np.array([1.0, np.inf, 3.0, np.nan]))
    2
    """
    finite = np.isfinite(fitness)
    return int(np.where(finite, fitness, -np.inf).argmax()) if finite.any() else None


def generation_metrics(generation: Generation) -> dict[str, float]:
    """Returns the metrics of a generation, on the host; performance is fitness."""
    fitness = np.asarray(generation.fitness, np.float64)
    known = fitness[np.isfinite(fitness)]
    known = known if known.size else np.zeros(1)
    copied = np.asarray(generation.copied)
    metrics = {
        "pbt/population_size": fitness.size,
        "pbt/ready_members": np.sum(generation.ready),
        "pbt/mean_performance": known.mean(),
        "pbt/std_performance": known.std(),
        "pbt/min_performance": known.min(),
        "pbt/max_performance": known.max(),
        "pbt/fallback_used": generation.fallback,
        "pbt/nonfinite_members": np.sum(~np.isfinite(fitness)),
        "pbt/recovered_members": np.sum(copied & ~np.isfinite(fitness)),
        "pbt/carries_cleared": np.sum(copied),
    }
    each = {"performance": fitness, "parent": generation.parent} | generation.numbers
    for name, values in each.items():
        metrics |= {f"pbt/{name}/{i}": value for i, value in enumerate(values)}
    return {name: float(value) for name, value in metrics.items()}

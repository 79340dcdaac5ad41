"""A population trained in one program; a single run is a population of one."""

import dataclasses
import functools
from collections.abc import Mapping
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from ppo_jax import component
from ppo_jax.arrays import counting, tree
from ppo_jax.arrays.keys import fused
from ppo_jax.arrays.packing import Packed, pack
from ppo_jax.pbt.config import PBT
from ppo_jax.pbt.exploit import exploit
from ppo_jax.pbt.explore import explore, moving
from ppo_jax.pbt.select import only_if, selected
from ppo_jax.ppo import learner
from ppo_jax.schedules import Progress
from ppo_jax.state import Population, Run
from ppo_jax.types import Array, Key, Metrics


def init(config: Any, keys: Key) -> Population:
    """Makes a population of one experiment.

    Args:
        config: The experiment; its numbers are scalars, or `[P]` each.
        keys: A key per member, `[P]`.
    """
    config = component.as_arrays(component.program(config))
    size = keys.shape[0]
    return _init(jax.tree.map(lambda x: jnp.broadcast_to(x, size), config), keys)


@jax.jit
def _init(config: Any, keys: Key) -> Population:
    return Population(
        runs=tree.each(learner.init, (0, 0))(config, keys),
        fitness=jnp.full(keys.shape[0], jnp.nan, jnp.float32),
        waited=jnp.int32(0),
    )


def member(population: Population, index: int) -> Population:
    """Returns one member as a population of its own."""
    return dataclasses.replace(
        population,
        runs=tree.take(population.runs, jnp.array([index])),
        fitness=population.fitness[jnp.array([index])],
    )


def with_numbers(population: Population, numbers: Mapping[str, Any]) -> Population:
    """Returns the members with other numbers, by path: scalars, or `[P]` each."""
    config = population.runs.learner.config
    known = component.numbers(config)
    for path, value in numbers.items():
        value = jnp.broadcast_to(jnp.float32(value), known[path].shape)
        config = component.replace_at(config, path, value)
    return _with_config(population, config)


def in_env_of(population: Population, config: Any) -> Population:
    """Returns the members in the environment of another experiment, with its numbers.

    What they have learned and all other numbers stay each member's own, and so do the
    states of the environments that they were trained in.
    """
    size = population.fitness.size
    other = component.as_arrays(component.program(config))
    other = jax.tree.map(lambda x: jnp.broadcast_to(x, size), other)
    own = component.numbers(population.runs.learner.config).items()
    kept = {path: value for path, value in own if not path.startswith("env.")}
    leaves = (component.numbers(other) | kept).values()
    mixed = jax.tree.unflatten(jax.tree.structure(other), leaves)
    return _with_config(population, mixed)


def _with_config(population: Population, config: Any) -> Population:
    """Returns the members with another experiment, whose numbers are `[P]` each."""
    learner = dataclasses.replace(population.runs.learner, config=config)
    runs = dataclasses.replace(population.runs, learner=learner)
    return dataclasses.replace(population, runs=runs)


@functools.partial(jax.jit, donate_argnums=0)
def advance(
    population: Population, progress: Progress, count: Array
) -> tuple[Population, Metrics]:
    """Runs a phase: updates of all members in one program.

    Args:
        population: The members; donated.
        progress: Progress of training before each of at most N updates, `[N]`.
        count: Number of updates to do, int32 `[]`: the last phase of a run is shorter
            and needs no other program.

    Returns:
        The population afterwards and metrics `[N, P]`, zeros from `count` on.
    """
    population, history = phase(population, progress, count)
    return population, history.unpack()


def phase(
    population: Population, progress: Progress, count: Array, fewest_steps: int = 0
) -> tuple[Population, Packed]:
    """Runs a phase as `advance` does, and returns its metrics in few arrays.

    Args:
        population: The members.
        progress: Progress of training before each update, `[N]`.
        count: Number of updates to do.
        fewest_steps: Least number of steps in the minibatches of the members that learn
            at once, all of them together; the others learn after them. 0: all members
            learn at once.
    """
    at_once = _at_once(population.runs, fewest_steps)
    members = jax.jit(functools.partial(_members, at_once))  # Traced once.
    _, spec = jax.eval_shape(members, population.runs, tree.take(progress, 0))
    empty = jax.tree.map(
        lambda x: jnp.zeros((progress.done.shape[0], *x.shape), x.dtype), spec
    )

    def update(i, loop):
        runs, history = loop
        runs, metrics = members(runs, tree.take(progress, i))
        put = functools.partial(jax.lax.dynamic_update_index_in_dim, index=i, axis=0)
        return runs, jax.tree.map(put, history, metrics)

    runs, history = jax.lax.fori_loop(0, count, update, (population.runs, empty))
    return dataclasses.replace(population, runs=runs), history


def _at_once(runs: Run, fewest_steps: int) -> int:
    """Returns how many members learn at once: all of them, or an equal share."""
    config, size = runs.learner.config, runs.key.shape[0]
    steps = config.steps_per_update // config.num_minibatches
    shares = counting.divisors(size)
    enough = [n for n in shares if fewest_steps and n * steps >= fewest_steps]
    return min(enough, default=size)


def _members(at_once: int, runs: Run, progress: Progress) -> tuple[Run, Packed]:
    """Runs an iteration of all members: they act together, and learn in groups."""
    if at_once == runs.key.shape[0]:
        return tree.each(_iteration, (0, None))(runs, progress)
    lived = tree.each(learner.lived, (0, None))(runs, progress)
    groups = jax.tree.map(lambda x: x.reshape(-1, at_once, *x.shape[1:]), lived)
    learn = functools.partial(tree.each(_learned, (None, 0)), progress)
    return tree.merge_leading(jax.lax.map(learn, groups))


def _iteration(run: Run, progress: Progress) -> tuple[Run, Packed]:
    return _learned(progress, learner.lived(run, progress))


def _learned(progress: Progress, lived: tuple) -> tuple[Run, Packed]:
    run, *experience = lived
    run, metrics = learner.learned(run, progress, *experience)
    return run, pack(metrics)


class Generation(NamedTuple):
    """The result of a generation for every member; a line of the lineage."""

    parent: Array
    """Index of the member that each one continues, int32 `[P]`; its own, unless it
    copied."""
    copied: Array
    """Whether the member copied another one, bool `[P]`."""
    explored: Array
    """Whether the member's numbers moved, bool `[P]`."""
    ready: Array
    """Whether the member was ready to evolve, bool `[P]`."""
    fitness: Array
    """Fitness before the generation, `[P]`.

    If it is not finite, the member is broken, or its fitness is not known yet."""
    numbers: dict[str, Array]
    """Numbers after the generation, `[P]` by path: those in force at the next
    update."""
    fallback: Array
    """Whether it took place only because the population waited too long, bool `[]`."""


@functools.partial(jax.jit, donate_argnums=1)
def evolve(
    pbt: PBT, population: Population, keys: Key
) -> tuple[Population, Generation]:
    """Runs a generation: some members copy better ones, and explore from there.

    A broken member copies in any round in which another one is ready. The policy whose
    fitness it had is gone then, so it has none until its next evaluation.

    Args:
        pbt: The rules.
        population: The members with their fitness; donated.
        keys: One key per member `[P]`, so that the order of members means nothing.

    Returns:
        The population afterwards, and the parent and numbers of every member. If too
        few are ready, only broken members change, and the population has waited.

    References:
        Jaderberg et al., `Population Based Training of Neural Networks
        <https://arxiv.org/abs/1711.09846>`_, 2017.
    """
    runs = population.runs
    fitness, broken = _judged(pbt, population)
    ready = pbt.readiness.members(runs.counters.episodes, fitness)
    now = pbt.readiness(ready, population.waited)
    keys_select, keys_explore = jax.vmap(jax.random.split, out_axes=1)(fused(keys))
    unknown = ~jnp.isfinite(fitness) & ~broken
    shown = jnp.where(unknown, 0.0, fitness)
    selection = selected(pbt.selector, shown, ready, keys_select)
    parent, copied = only_if(now.proceed | broken, selection)
    explored = moving(pbt.movers, copied, now.proceed)
    numbers = tree.take(pbt.space.read(runs.learner.config), parent)
    numbers = explore(pbt.explorer, pbt.space, numbers, explored, keys_explore)
    runs = exploit(pbt.optimizer, runs, parent, copied)
    config = pbt.space.write(runs.learner.config, numbers)
    learner = dataclasses.replace(runs.learner, config=config)
    population = Population(
        runs=dataclasses.replace(runs, learner=learner),
        fitness=jnp.where(copied, fitness, population.fitness),
        waited=now.waited,
    )
    return population, Generation(
        parent, copied, explored, ready, fitness, numbers, now.fallback
    )


def _judged(pbt: PBT, population: Population) -> tuple[Array, Array]:
    """Returns the fitness of the members, and whether each is broken, `[P]` each.

    A member is broken if its parameters are not finite, or if its last update took no
    step for an error, whatever its fitness: a policy of NaN plays on, as some action is
    always the first. A member without a finite fitness is broken too, unless it only
    has to wait for it, as for the return of an episode that ends.
    """
    runs = population.runs
    whole = tree.all_finite(runs.learner.params, batch_axes=1)
    learns = whole & (runs.counters.failure_streak == 0)
    fitness = jnp.where(learns, population.fitness, jnp.nan)
    return fitness, ~learns | (~jnp.isfinite(fitness) & pbt.fitness.of_evaluations)

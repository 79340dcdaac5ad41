"""A population trained in one program; a single run is a population of one."""

import functools
from typing import Any

import jax
import jax.numpy as jnp

from ppo_jax import component, learner
from ppo_jax.state import Population
from ppo_jax.types import Array, Key, Metrics


def init(config: Any, keys: Key) -> Population:
    """A population of one experiment.

    Args:
        config: The experiment; its numbers are scalars, or `[P]` each.
        keys: A key per member, `[P]`.
    """
    config = component.as_arrays(component.program(config))
    size = keys.shape[0]
    return _init(jax.tree.map(lambda x: jnp.broadcast_to(x, size), config), keys)


@jax.jit
def _init(config: Any, keys: Key) -> Population:
    return Population(runs=jax.vmap(learner.init)(config, keys))


@functools.partial(jax.jit, donate_argnums=0)
def advance(
    population: Population, progress: Array, count: Array
) -> tuple[Population, Metrics]:
    """A phase: updates of all members in one program.

    Args:
        population: The members; donated.
        progress: Progress before each update, `[N]`, for at most N updates.
        count: How many of them to do, int32 `[]`: the last phase of a run is shorter
            and needs no other program.

    Returns:
        The population afterwards and metrics `[N, P]`, zeros from `count` on.
    """
    members = jax.vmap(learner.iteration, in_axes=(0, None))
    _, spec = jax.eval_shape(members, population.runs, progress[0])
    empty = jax.tree.map(
        lambda x: jnp.zeros((progress.shape[0], *x.shape), x.dtype), spec
    )

    def update(i, loop):
        runs, history = loop
        runs, metrics = members(runs, progress[i])
        return runs, jax.tree.map(lambda h, m: h.at[i].set(m), history, metrics)

    runs, history = jax.lax.fori_loop(0, count, update, (population.runs, empty))
    return Population(runs=runs), history

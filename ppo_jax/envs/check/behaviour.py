"""Findings of `check` by playing: random episodes, read afterwards on the host."""

import functools
import warnings
from collections.abc import Iterator
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from ppo_jax.arrays.keys import fused
from ppo_jax.component import as_arrays
from ppo_jax.envs.env import ActionSpace, Box, Discrete, Env, Timestep, strong
from ppo_jax.types import Array, Key, PyTree

NUM_RESETS = 1024
"""Number of resets that show how an episode can begin."""


class Played(NamedTuple):
    """A record of play; leaves `[T, B, ...]`."""

    timestep: Timestep
    state: PyTree
    """States after each step."""
    allowed: Array
    """Whether any action was allowed before each step, bool `[T, B]`."""
    begun: tuple[PyTree, PyTree]
    """Observations and states of independent resets, leaves `[NUM_RESETS, ...]`."""


class Table(NamedTuple):
    """Any tree as named columns of numbers, a row per step and environment."""

    names: list[str]
    leaves: list[str]
    """The leaf that each column is a part of."""
    values: np.ndarray


def play(env: Env, steps: int, num_envs: int, seed: int) -> tuple[Played, Played]:
    """Plays with random allowed actions, twice the same, as NumPy arrays."""
    numbers, structure = jax.tree.flatten(as_arrays(env))
    space = env.action_space

    @jax.jit
    def run(numbers, key):
        env = structure.unflatten(numbers)
        key_begun, key_steps = jax.random.split(fused(key))

        def step(state, keys):
            masks = jax.vmap(env.action_mask, axis_size=num_envs)(state)
            action, allowed = jax.vmap(functools.partial(_act, space))(keys[0], masks)
            timestep, state = jax.vmap(env.step)(keys[1], state, action)
            return fused(strong(state)), (timestep, state, allowed)

        begun = jax.vmap(env.reset)(jax.random.split(key_begun, NUM_RESETS))
        state = fused(strong(jax.tree.map(lambda x: x[:num_envs], begun[1])))
        keys = jax.random.split(key_steps, (steps, 2, num_envs))
        _, record = jax.lax.scan(step, state, keys)
        return jax.tree.map(plain, Played(*record, begun))

    key = jax.random.key(seed)
    return jax.device_get(run(numbers, key)), jax.device_get(run(numbers, key))


def _act(space: ActionSpace, key: Key, mask: Array | None) -> tuple[Array, Array]:
    """Draws a random allowed action; also returns whether there is one."""
    if isinstance(space, Box):
        low, high = _ends(*(np.array(x, np.float32) for x in space))
        share = jax.random.uniform(key, low.shape)
        action = (1 - share) * low + share * high  # high − low may overflow.
        return jnp.asarray(action, jnp.float32), jnp.array(True)
    mask = jnp.ones(sum(space.nvec), bool) if mask is None else mask
    parts = jnp.split(mask, np.cumsum(space.nvec)[:-1])
    keys = jax.random.split(key, len(space.nvec))
    action = [
        jax.random.categorical(k, jnp.where(part, 0.0, -jnp.inf)).astype(jnp.int32)
        for k, part in zip(keys, parts, strict=True)
    ]
    allowed = jnp.stack([part.any() for part in parts]).all()
    return action[0] if isinstance(space, Discrete) else jnp.stack(action), allowed


def _ends(low: np.ndarray, high: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Returns finite bounds; 20 lie between those of an action without any.

    >>> _ends(np.float32([-np.inf, 100, 0]), np.float32([np.inf, np.inf, 1]))
    (array([-10., 100.,   0.], dtype=float32), array([ 10., 120.,   1.], dtype=float32))
    """
    low = np.where(np.isfinite(low), low, np.minimum(-10.0, high - 20.0))
    high = np.where(np.isfinite(high), high, np.maximum(10.0, low + 20.0))
    return low, high


def read(
    env: Env, played: Played, again: Played, carried: tuple[str, ...]
) -> list[str]:
    """Returns the findings about a record and its repetition."""
    steps, num_envs = played.timestep.reward.shape
    rows = steps * num_envs
    final_obs = _table("final_obs", played.timestep.final_obs, rows)
    after = _tables(played.timestep.obs, played.state, rows, carried)
    begun = _tables(*played.begun, NUM_RESETS, carried)
    ends = np.ravel(played.timestep.terminated | played.timestep.truncated)
    if not ends.any():
        warnings.warn(
            f"no episode ended within {steps} steps, so that resets were not checked",
            stacklevel=4,
        )
    return [
        *_not_repeated(played, again, rows),
        *_not_finite(played.timestep, begun[0], num_envs),
        *_not_allowed(np.asarray(played.allowed)),
        *_lengths(env, played.timestep),
        *_final_observations(final_obs, after[0], ends, num_envs),
        *_not_reset(after[0], begun[0], ends),
        *_not_reset(after[1], begun[1], ends),
        *_same_start(after, begun, ends),
    ]


def _not_repeated(played: Played, again: Played, rows: int) -> Iterator[str]:
    """Checks that the same keys give the same results."""
    first, second = (_table("", (x.timestep, x.state), rows) for x in (played, again))
    if not np.array_equal(first.values, second.values, equal_nan=True):
        yield (
            "step: got other results from the same keys, expected the same; draw all "
            "randomness from the key"
        )


def _not_finite(timestep: Timestep, first_obs: Table, num_envs: int) -> Iterator[str]:
    """Checks that observations, rewards and weights are finite; costs need not be."""
    for row, column in _first(~np.isfinite(first_obs.values)):
        given = f"{first_obs.names[column]}: got {first_obs.values[row, column]}"
        yield f"reset: {given}, expected finite numbers"
    for name in ("obs", "final_obs", "reward", "weight"):
        table = _table(name, getattr(timestep, name), timestep.reward.size)
        for row, column in _first(~np.isfinite(table.values)):
            given = f"{table.names[column]}: got {table.values[row, column]}"
            yield f"{given} {_where(row, num_envs)}, expected finite numbers"
    weight = np.asarray(timestep.weight)
    if (weight < 0).any():
        yield f"weight: got {weight.min():g}, expected at least 0"


def _not_allowed(allowed: np.ndarray) -> Iterator[str]:
    """Checks that masks always allow some action."""
    for step, env in _first(~allowed):
        yield (
            f"action_mask: got no allowed action before step {step} of environment "
            f"{env}, expected at least one for every component of the action"
        )


def _lengths(env: Env, timestep: Timestep) -> Iterator[str]:
    """Checks lengths against `min_steps_to_truncation` and `max_episode_steps`."""
    shortest, longest = np.inf, 0
    length = np.zeros(timestep.reward.shape[1], int)
    for terminated, truncated in zip(
        timestep.terminated, timestep.truncated, strict=True
    ):
        length += 1
        shortest = min([shortest, *length[truncated]])
        longest = max(longest, length.max())
        length[terminated | truncated] = 0
    least, most = env.min_steps_to_truncation, env.max_episode_steps
    if shortest < least:
        yield (
            f"min_steps_to_truncation: got a truncation after {shortest} steps, "
            f"expected at least {least}; lower it, or see whether resets restart the "
            "clock"
        )
    if most is not None and longest > most:
        yield (
            f"max_episode_steps: got an episode of {longest} steps or more, expected "
            f"at most {most}; raise it, or end episodes then"
        )


def _final_observations(
    final_obs: Table, obs: Table, ends: np.ndarray, num_envs: int
) -> Iterator[str]:
    """Checks that `final_obs` is `obs` within an episode, and older at an end."""
    differ = _differ(final_obs.values, obs.values)
    for row, column in _first(differ & ~ends[:, None]):
        yield (
            f"{final_obs.names[column]}: got {final_obs.values[row, column]:g} "
            f"{_where(row, num_envs)}, expected {obs.values[row, column]:g} as in obs, "
            "since no episode ended there"
        )
    various = len(np.unique(obs.values[ends], axis=0)) >= 4
    if various and not differ.any():
        yield (
            f"final_obs: got the next episode's first observation at all {ends.sum()} "
            "ends of episodes, expected what the step led to, before the reset"
        )


def _not_reset(after: Table, begun: Table, ends: np.ndarray) -> Iterator[str]:
    """Checks that values after an end lie in the range of resets, ten times widened."""
    low, high = begun.values.min(axis=0), begun.values.max(axis=0)
    slack = 10 * (high - low) + 1e-5 * np.maximum(np.abs(low), np.abs(high)) + 1e-6
    values = after.values[ends]
    outside = (values < low - slack) | (values > high + slack)
    for row, column in _first(outside):
        leaves = [after.leaves[i] for i in np.flatnonzero(outside.any(axis=0))]
        more = f" (and {len(leaves) - 1} more like it)" if len(leaves) > 1 else ""
        names = tuple(dict.fromkeys(leaves))
        yield (
            f"{after.names[column]}: got {values[row, column]:g} after an end{more}, "
            f"expected {low[column]:g} to {high[column]:g} as after resets; return "
            "what a reset returns, or, if it is kept on purpose, "
            f"check(env, carried={names})"
        )


def _same_start(
    after: list[Table], begun: list[Table], ends: np.ndarray
) -> Iterator[str]:
    """Checks that new episodes differ if resets do."""
    starts = np.concatenate([table.values[ends] for table in after], axis=1)
    resets = np.concatenate([table.values for table in begun], axis=1)
    if len(starts) < 16 or _differ(starts, starts[:1]).any():
        return
    share = 1 - _differ(resets, starts[:1]).any(axis=1).mean()
    if share <= 0.5:
        yield (
            f"step: got {len(starts)} new episodes that begin alike, expected as many "
            "kinds as resets show; reset with a part of the step's key"
        )


def _tables(
    obs: PyTree, state: PyTree, rows: int, carried: tuple[str, ...]
) -> list[Table]:
    """Returns tables of observations, and of states without parts in `carried`."""
    return [_table("obs", obs, rows), _without(carried, _table("state", state, rows))]


def _table(name: str, tree: PyTree, rows: int) -> Table:
    """Makes a table of the leaves of a tree, whose leading axes become rows."""
    names, leaves, columns = [], [], [np.zeros((rows, 0))]
    for path, leaf in jax.tree_util.tree_flatten_with_path(tree)[0]:
        column = np.asarray(leaf, np.float64).reshape(rows, -1)
        columns.append(column)
        label, width = name + jax.tree_util.keystr(path), column.shape[1]
        names += [label] if width == 1 else [f"{label}[{i}]" for i in range(width)]
        leaves += [label] * width
    return Table(names, leaves, np.concatenate(columns, axis=1))


def _without(carried: tuple[str, ...], table: Table) -> Table:
    keep = [i for i, name in enumerate(table.names) if not name.startswith(carried)]
    names, leaves = ([each[i] for i in keep] for each in table[:2])
    return Table(names, leaves, table.values[:, keep])


def plain(x: Array) -> Array:
    """Returns an array that NumPy understands: a key becomes its data."""
    is_key = jnp.issubdtype(x.dtype, jax.dtypes.prng_key)
    return jax.random.key_data(x) if is_key else x


def _differ(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Returns a mask of values that differ by more than rounding can explain."""
    return ~np.isclose(a, b, rtol=1e-5, atol=1e-6, equal_nan=True)


def _first(bad: np.ndarray) -> np.ndarray:
    """Returns the indices of the first bad place as a row; no row if there is none."""
    return np.argwhere(bad)[:1]


def _where(row: int, num_envs: int) -> str:
    step, env = divmod(int(row), num_envs)
    return f"at step {step} of environment {env}"

"""Spaces of gymnasium as ours: what agents see of them, and do in them."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from ppo_jax.envs import worker
from ppo_jax.envs.env import ActionSpace, Box, Discrete, MultiDiscrete
from ppo_jax.envs.worker import Read
from ppo_jax.errors import kind
from ppo_jax.types import PyTree


class Leaf(NamedTuple):
    """A leaf of observations, where it is and what it becomes."""

    path: tuple[Any, ...]
    """Keys and indices that lead to it."""
    choices: tuple[int, ...]
    """Of whole numbers, how many values each has: they become ones among zeros."""
    first: Any
    """The first of these values."""
    shape: tuple[int, ...]
    dtype: str


class Observations(NamedTuple):
    """What agents see."""

    reads: tuple[Read, ...]
    """Its leaves, as a worker reads them."""
    structure: Any

    @property
    def shapes(self) -> PyTree:
        """Shapes and types of one observation."""
        leaves = [jax.ShapeDtypeStruct(x[3], jnp.dtype(x[4])) for x in self.reads]
        return self.structure.unflatten(leaves)


def action_space(name: str, space: Any) -> ActionSpace:
    """The actions of an environment.

    Raises:
        ValueError: If its agent can do several things of different kinds at once, or
            has bounds for whole numbers in place of choices.
    """
    if hasattr(space, "nvec"):
        return MultiDiscrete(tuple(np.ravel(space.nvec).tolist()))
    if hasattr(space, "low"):
        if not np.issubdtype(space.dtype, np.floating):
            expected = "real actions in a Box; whole ones are a MultiDiscrete"
            raise ValueError(f"{name}: expected {expected}, got {space!r}")
        low, high = (
            np.ravel(x).astype(float).tolist() for x in (space.low, space.high)
        )
        return Box(tuple(low), tuple(high))
    if hasattr(space, "start"):
        return Discrete(int(space.n))
    if hasattr(space, "n"):
        return MultiDiscrete((2,) * int(np.prod(space.shape)))
    raise ValueError(f"{name}: expected one space for actions, got {space!r}")


def masked(name: str, space: ActionSpace, first: Any) -> tuple[int, ...]:
    """How many choices each part of an action has, if masks say which are allowed.

    Args:
        name: What messages call the environment.
        space: Its actions.
        first: What its first reset gave: an observation and an info.

    Raises:
        ValueError: If that is no reset of gymnasium, or no mask of these actions.

    >>> first = None, {"action_mask": [1, 0, 1]}
    >>> masked("Maze", Discrete(3), first), masked("Maze", Discrete(3), (None, {}))
    ((3,), ())
    """
    pair = isinstance(first, tuple) and len(first) == 2
    if not (pair and isinstance(first[1], Mapping)):
        expected = "an observation and a dictionary, as resets of gymnasium give"
        raise ValueError(f"{name}: expected {expected}, got {kind(first)}")
    _, info = first
    if worker.MASK not in info:
        return ()
    if isinstance(space, Box):
        said = f"info[{worker.MASK!r}]: got a mask, expected none for real actions"
        raise ValueError(f"{name}: {said}")
    try:
        worker.mask(info, space.nvec)
    except ValueError as error:
        raise ValueError(f"{name}: {error}") from error
    return space.nvec


def moves(space: Any, actions: np.ndarray) -> np.ndarray:
    """Actions `[n, ...]` as the environment takes them.

    >>> from gymnasium.spaces import Discrete
    >>> moves(Discrete(3, start=-1), np.array([0, 2])).tolist()
    [-1, 1]
    """
    shaped = actions.reshape(len(actions), *space.shape)
    return (shaped + getattr(space, "start", 0)).astype(space.dtype)


def observations(name: str, space: Any) -> Observations:
    """What agents see of an environment; whole numbers as ones among zeros.

    Raises:
        ValueError: If it has no shape that stays the same.

    >>> from gymnasium.spaces import Box, Dict, Discrete
    >>> space = Dict({"where": Discrete(4), "how": Box(-1.0, 1.0, (2,))})
    >>> observations("Maze", space).shapes["where"]
    ShapeDtypeStruct(shape=(4,), dtype=float32)
    """
    leaves, structure = jax.tree.flatten(
        _described(name, space, ()), is_leaf=lambda x: isinstance(x, Leaf)
    )
    return Observations(tuple(map(tuple, leaves)), structure)


def _described(name: str, space: Any, path: tuple[Any, ...]) -> PyTree:
    parts = getattr(space, "spaces", None)
    if isinstance(parts, Sequence):
        each = enumerate(parts)
        return tuple(_described(name, part, (*path, i)) for i, part in each)
    if parts is not None:
        return {key: _described(name, x, (*path, key)) for key, x in parts.items()}
    if hasattr(space, "low"):
        return Leaf(path, (), 0, space.shape, _seen(space.dtype))
    if hasattr(space, "nvec") or hasattr(space, "start"):
        choices = np.ravel(getattr(space, "nvec", getattr(space, "n", 0))).tolist()
        first = np.ravel(space.start).tolist()
        return Leaf(path, tuple(choices), first, (sum(choices),), "float32")
    if hasattr(space, "n"):
        return Leaf(path, (), 0, space.shape, "float32")
    raise ValueError(f"{name}: expected observations of a shape, got {space!r}")


def _seen(dtype: Any) -> str:
    """What numbers become: those of pictures stay as they are."""
    kinds = {"f": "float32", "b": "float32", "i": "int32", "u": "int32"}
    return "uint8" if dtype == np.uint8 else kinds[np.dtype(dtype).kind]

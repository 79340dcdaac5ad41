"""Spaces of gymnasium, converted to observations and actions of agents."""

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
    """A leaf of observations: its place, and the shape and type it is converted to."""

    path: tuple[Any, ...]
    """Keys and indices that lead to the leaf."""
    choices: tuple[int, ...]
    """Number of values of each whole number, which becomes a one-hot vector; `()` if
    the leaf is none of whole numbers."""
    first: Any
    """The first of these values."""
    shape: tuple[int, ...]
    dtype: str


class Observations(NamedTuple):
    """The observations that agents see."""

    reads: tuple[Read, ...]
    """Leaves of an observation, as a worker reads them."""
    structure: Any

    @property
    def shapes(self) -> PyTree:
        """Shapes and types of one observation."""
        leaves = [jax.ShapeDtypeStruct(x[3], jnp.dtype(x[4])) for x in self.reads]
        return self.structure.unflatten(leaves)


def action_space(name: str, space: Any) -> ActionSpace:
    """Returns the action space of an environment.

    Raises:
        ValueError: If an action has parts of different kinds, or is a whole number with
            bounds in place of choices.
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
    """Returns the choices of each part of an action if there are masks, otherwise `()`.

    Args:
        name: The environment's name in messages.
        space: Its actions.
        first: Result of its first reset: an observation and an info.

    Raises:
        ValueError: If `first` is no result of a reset of gymnasium, or its mask does
            not fit these actions.

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
        message = f"info[{worker.MASK!r}]: got a mask, expected none for real actions"
        raise ValueError(f"{name}: {message}")
    try:
        worker.mask(info, space.nvec)
    except ValueError as error:
        raise ValueError(f"{name}: {error}") from error
    return space.nvec


def moves(space: Any, actions: np.ndarray) -> np.ndarray:
    """Converts actions `[n, ...]` to those that the environment takes.

    Bounds in float64 may lie within those of float32.

    >>> from gymnasium.spaces import Discrete
    >>> moves(Discrete(3, start=-1), np.array([0, 2])).tolist()
    [-1, 1]
    """
    shaped = actions.reshape(len(actions), *space.shape)
    taken = (shaped + getattr(space, "start", 0)).astype(space.dtype)
    return np.clip(taken, space.low, space.high) if hasattr(space, "low") else taken


def first_moves(space: Any, info: Mapping[str, Any], choices: tuple[int, ...]) -> Any:
    """Returns the action nearest to 0 that is allowed, as `moves` does, `[1, ...]`.

    >>> from gymnasium.spaces import Box, Discrete
    >>> first_moves(Discrete(3), {"action_mask": np.array([0, 1, 1])}, (3,)).tolist()
    [1]
    >>> first_moves(Box(0.5, 1.0, (2,)), {}, ()).tolist()
    [[0.5, 0.5]]
    """
    chosen = np.zeros(space.shape)
    if choices:
        parts = np.split(worker.mask(info, choices), np.cumsum(choices)[:-1])
        chosen = np.reshape([part.argmax() for part in parts], space.shape)
    return moves(space, chosen[None])


def observations(name: str, space: Any) -> Observations:
    """Returns the observations of an environment; whole numbers become one-hot vectors.

    Raises:
        ValueError: If the space has no fixed shape.

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
        return Leaf(path, (), 0, space.shape, _seen(space))
    if hasattr(space, "nvec") or hasattr(space, "start"):
        choices = np.ravel(getattr(space, "nvec", getattr(space, "n", 0))).tolist()
        first = np.ravel(space.start).tolist()
        return Leaf(path, tuple(choices), first, (sum(choices),), "float32")
    if hasattr(space, "n"):
        return Leaf(path, (), 0, space.shape, "float32")
    raise ValueError(f"{name}: expected observations of a shape, got {space!r}")


def _seen(space: Any) -> str:
    """Returns the type that numbers are converted to; uint8 of pictures stays.

    Whole numbers that may be too large for an int32 are floats.
    """
    if space.dtype == np.uint8:
        return "uint8"
    if space.dtype.kind not in "iu":
        return "float32"
    least, most = np.iinfo(np.int32).min, np.iinfo(np.int32).max
    small = (space.low >= least).all() and (space.high <= most).all()
    return "int32" if small else "float32"

"""Streams of random numbers: the keys that a seed gives, by what they are for.

A seed gives a key for each whole number below 2³². Evaluations take one by the update
that they come after, from 1 on; all others have one of their own.
"""

import jax
from jax.typing import ArrayLike

from ppo_jax.types import Key

MEMBERS = 0
SETTINGS = 2**32 - 2
GENERATIONS = 2**32 - 1


def members(seed: ArrayLike, count: int = 1) -> Key:
    """Of the members of an experiment before their first update, `[P]`."""
    return jax.random.split(_stream(seed, MEMBERS), count)


def evaluation(seed: int, update: int) -> Key:
    """Of the episodes that are played after so many updates."""
    return _stream(seed, 1 + update)


def generation(seed: ArrayLike, update: int, count: int) -> Key:
    """Of the members of a generation after so many updates, `[P]`."""
    key = jax.random.fold_in(_stream(seed, GENERATIONS), update)
    return jax.random.split(key, count)


def settings(seed: int) -> Key:
    """Of the settings that a sweep draws."""
    return _stream(seed, SETTINGS)


def _stream(seed: ArrayLike, number: int) -> Key:
    return jax.random.fold_in(jax.random.key(seed), number)

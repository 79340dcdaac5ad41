"""Streams of random numbers: the keys that a seed gives, by their purpose.

A seed gives a key for each whole number below 2³². Evaluations take the numbers from 1
on, by the updates done before; every other purpose has one number of its own.
"""

import jax
import numpy as np
from jax.typing import ArrayLike

from ppo_jax.arrays.keys import fused, plain
from ppo_jax.types import Key

MEMBERS = 0
SETTINGS = 2**32 - 2
GENERATIONS = 2**32 - 1


def members(seed: ArrayLike, count: int = 1) -> Key:
    """Returns the keys of an experiment's members before their first update, `[P]`."""
    return plain(jax.random.split(_stream(seed, MEMBERS), count))


def evaluation(seed: int, update: int) -> Key:
    """Returns the key of the episodes that are played after so many updates."""
    return _key(np.uint32(seed), np.uint32(1 + update))


def generation(seed: ArrayLike, update: int, count: int) -> Key:
    """Returns the keys of a generation's members after so many updates, `[P]`."""
    key = jax.random.fold_in(_stream(seed, GENERATIONS), update)
    return plain(jax.random.split(key, count))


def settings(seed: int) -> Key:
    """Returns the key of the settings that a sweep draws."""
    return _key(np.uint32(seed), np.uint32(SETTINGS))


@jax.jit
def _key(seed: ArrayLike, number: ArrayLike) -> Key:
    """Returns the key of one number, by a program for all of them."""
    return plain(_stream(seed, number))


def _stream(seed: ArrayLike, number: ArrayLike) -> Key:
    return jax.random.fold_in(fused(jax.random.key(seed)), number)

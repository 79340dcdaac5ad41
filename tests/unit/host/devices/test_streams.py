"""Keys that a seed gives: no two are alike, and the same seed gives the same."""

import chex
import jax
import numpy as np
import pytest

from ppo_jax.host.devices import streams

LAST = 2**32 - 4
"""The last update that has a stream of its own."""


def given(seed):
    """All kinds of keys of a seed, side by side."""
    return [
        *streams.members(seed, 3),
        *[streams.evaluation(seed, update) for update in (0, 1, 2, 10**6, LAST)],
        *[key for update in (0, 5) for key in streams.generation(seed, update, 3)],
        streams.settings(seed),
    ]


def bits(keys):
    return [jax.random.key_data(key).tobytes() for key in keys]


def test_no_two_streams_are_alike():
    """Of any use, member, update and seed."""
    keys = bits([key for seed in (0, 1, 2**32 - 1) for key in given(seed)])
    assert len(set(keys)) == len(keys) == 3 * 15


def test_no_stream_is_what_another_is_made_of():
    """Whoever splits a key has all that others made of it."""
    others = [streams.evaluation(7, update) for update in (0, 1, LAST)]
    others.append(streams.settings(7))
    others += [jax.random.fold_in(key, 5) for key in others]
    split = [each for key in others for each in jax.random.split(key, 3)]
    made = [*streams.members(7, 3), *streams.generation(7, 5, 3)]
    assert not {*bits(split)} & {*bits(made)}


def test_a_seed_gives_the_same_again():
    assert bits(given(7)) == bits(given(7))


@pytest.mark.parametrize("seed", [0, 7, 2**31, 2**32 - 1])
def test_the_key_of_an_evaluation_is_folded_from_the_seed(seed):
    """As JAX itself does it, which is what runs of before were played with."""
    for update in (0, 41, LAST):
        key = jax.random.fold_in(jax.random.key(seed), np.uint32(1 + update))
        assert bits([streams.evaluation(seed, update)]) == bits([key])


def test_a_single_run_is_the_only_member():
    chex.assert_shape(streams.members(0), (1,))
    chex.assert_shape(streams.generation(0, 3, 5), (5,))

"""What a field takes: nothing is lost, and nothing is guessed."""

from typing import Literal

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from ppo_jax.component.coercion import coerced, fits

MANY = np.array([1.0, 2.0])
KEY = jax.random.key(0)


@pytest.mark.parametrize(
    ("hint", "given", "taken"),
    [
        (float, 3, 3.0),
        (float, np.float32(0.25), 0.25),
        (float, jnp.array(2), 2.0),
        (int, 4.0, 4),
        (int, np.int8(4), 4),
        (int, jnp.array(4.0), 4),
        (float | None, 2, 2.0),
        (float | None, None, None),
        (int | float, 2, 2),
        (int | float, 2.0, 2.0),
        (tuple[float, ...], [1, np.int32(2)], (1.0, 2.0)),
        (tuple[int, float], [1.0, 2], (1, 2.0)),
        (tuple[tuple[int, ...], ...], [[1.0], (2,)], ((1,), (2,))),
        (tuple[float, ...] | None, [1], (1.0,)),
    ],
)
def test_what_loses_nothing_is_taken(hint, given, taken):
    got = coerced(hint, given)
    assert repr(got) == repr(taken)
    assert fits(hint, got)


@pytest.mark.parametrize(
    ("hint", "given"),
    [
        (int, 1.5),
        (int, True),
        (int, "1"),
        (int, np.inf),
        (int, MANY),
        (int, KEY),
        (float, KEY),
        (float, "1"),
        (float, True),
        (float, None),
        (bool, 1),
        (float | None, "none"),
        (tuple[int, ...], (1, 2.5)),
        (tuple[int, float], (1, 2.0, 3.0)),
        (Literal["tanh", "relu"], "than"),
    ],
)
def test_what_would_lose_something_is_left_and_does_not_fit(hint, given):
    assert repr(coerced(hint, given)) == repr(given)
    assert not fits(hint, given)


def test_arrays_of_many_numbers_are_floats_as_they_are():
    """Members have theirs side by side."""
    assert coerced(float, MANY) is MANY
    assert fits(float, MANY) and fits(float | None, MANY)
    assert fits(tuple[float, ...], (MANY, 1.0))


def test_traced_numbers_are_never_read():
    @jax.jit
    def run(x):
        assert coerced(float, x) is x and coerced(int, x) is x
        assert fits(float, x) and not fits(int, x)
        return x

    assert run(1.5) == 1.5

"""Seconds of compiling, and of what runs afterwards."""

import time

import jax
import jax.numpy as jnp
import pytest

from ppo_jax.host.loop.stopwatch import Stopwatch


def fresh():
    """A function that was never compiled."""
    return jax.jit(lambda x: jnp.sin(x) * 2)


def test_compiling_ends_with_the_last_program():
    """All before it counts as compiling, all after it as running."""
    with Stopwatch() as watch:
        time.sleep(0.05)
        fresh()(1.0)
        time.sleep(0.03)
    assert watch.compiling > 0.05 and 0.03 < watch.running < watch.compiling + 0.03


def test_without_a_new_program_nothing_is_compiled():
    f = fresh()
    f(1.0)
    with Stopwatch() as watch:
        jax.block_until_ready(f(2.0))
    assert watch.compiling == 0.0 < watch.running


def test_it_hears_nothing_afterwards_whatever_happened_within():
    with pytest.raises(ZeroDivisionError), Stopwatch() as watch:
        1 / 0  # noqa: B018
    fresh()(1.0)
    assert watch.compiling == 0.0


def test_one_within_another_hears_for_itself():
    with Stopwatch() as outer:
        fresh()(1.0)
        with Stopwatch() as inner:
            pass
    assert inner.compiling == 0.0 < outer.compiling

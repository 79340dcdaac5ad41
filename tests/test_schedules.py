"""Schedules: their ends, their middle, and traced arguments."""

import dataclasses
import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from ppo_jax.component import as_arrays, numbers
from ppo_jax.schedules import Constant, Cosine, Linear, Schedule, Warmup

PROGRESS = np.linspace(0, 1, 21)
ALL = [Constant(), Linear(0.1), Cosine(0.1), Warmup(0.25, then=Linear(0.1))]


def oracle(schedule, p):
    """The factor in float64."""
    match schedule:
        case Constant():
            return 1.0
        case Linear(final):
            return 1 + (final - 1) * p
        case Cosine(final):
            return final + (1 - final) * (1 + math.cos(math.pi * p)) / 2
        case Warmup(fraction, then):
            rest = (p - fraction) / (1 - fraction)
            return p / fraction if p < fraction else oracle(then, rest)


@pytest.mark.parametrize("schedule", ALL, ids=lambda s: type(s).__name__)
def test_factors_equal_a_formula(variant, schedule):
    values = variant(jax.vmap(schedule))(jnp.asarray(PROGRESS, jnp.float32))
    expected = [oracle(schedule, p) for p in PROGRESS]
    np.testing.assert_allclose(values, expected, atol=1e-6)
    assert values.dtype == jnp.float32


@pytest.mark.parametrize("schedule", ALL, ids=lambda s: type(s).__name__)
def test_ends_are_exact_and_hold_outside_of_training(schedule):
    first = 0.0 if isinstance(schedule, Warmup) else 1.0
    last = 1.0 if isinstance(schedule, Constant) else np.float32(0.1)
    assert schedule(0.0) == schedule(-1.0) == first
    assert schedule(1.0) == schedule(2.0) == last


@pytest.mark.parametrize("then", [Constant(), Linear(), Cosine(0.5)])
def test_a_warmup_of_no_length_is_absent(then):
    with jax.debug_nans(True):
        for p in (0.0, 0.5, 1.0):
            assert Warmup(fraction=0.0, then=then)(p) == then(p)


def test_numbers_of_a_schedule_may_be_traced():
    """One compilation for members with their own warm-up and their own end."""
    members = jax.vmap(lambda f, e: as_arrays(Warmup(f, then=Linear(e))))(
        jnp.array([0.0, 0.5]), jnp.array([0.0, 0.5])
    )
    assert set(numbers(members)) == {"fraction", "then.final"}
    factors = jax.vmap(lambda schedule: schedule(0.25))(members)
    np.testing.assert_allclose(factors, [0.75, 0.5], rtol=1e-6)


@pytest.mark.parametrize("kind", [Linear, Cosine])
@pytest.mark.parametrize("final", [-0.1, math.inf, math.nan])
def test_a_final_factor_is_finite_and_not_negative(kind, final):
    with pytest.raises(ValueError, match=rf"{kind.__name__}\.final: expected a finite"):
        kind(final=final)


@pytest.mark.parametrize("fraction", [-0.1, 1.0, math.nan])
def test_a_warmup_leaves_something_of_training(fraction):
    with pytest.raises(ValueError, match=r"Warmup\.fraction: expected a number"):
        Warmup(fraction=fraction)


def test_a_schedule_of_ones_own():
    from ppo_jax.component import component

    @component
    class Halves(Schedule):
        after: float = 0.5

        def __call__(self, progress):
            return jnp.where(progress < self.after, 1.0, 0.5)

    warmup = Warmup(fraction=0.0, then=Halves())
    assert [float(warmup(p)) for p in (0.0, 0.6)] == [1.0, 0.5]
    assert dataclasses.replace(warmup, fraction=0.1).then == Halves()
    with pytest.raises(NotImplementedError):
        Schedule()(0.0)

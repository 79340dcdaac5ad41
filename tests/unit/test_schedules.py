"""Schedules: their ends, their middle, and traced arguments."""

import dataclasses
import math

import chex
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from minibatches import context, forward, minibatch

from ppo_jax.attacks.perturbations import Fgsm
from ppo_jax.component import as_arrays, component, numbers
from ppo_jax.errors import Misfit
from ppo_jax.optimizers import Adam
from ppo_jax.schedules import (
    Bounded,
    Constant,
    Cosine,
    Linear,
    Progress,
    Ramp,
    Schedule,
    Warmup,
    factor,
    rise,
)
from ppo_jax.terms import Surrogate

PROGRESS = np.linspace(0, 1, 21)
ALL = [
    Constant(),
    Linear(0.1),
    Cosine(0.1),
    Warmup(0.25, then=Linear(0.1)),
    Ramp(final=0.1, begin=0.2, length=0.55),
    Bounded(Linear(), floor=0.1),
    Bounded(Ramp(1.8, 0.0, 0.2, 0.6), floor=0.1, cap=1.0),
]


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
        case Ramp(initial, final, begin, length):
            return np.interp(p, [begin, begin + length], [initial, final])
        case Bounded(schedule, floor, cap):
            return min(max(oracle(schedule, p), floor), cap)


@pytest.mark.parametrize("schedule", ALL, ids=lambda s: type(s).__name__)
def test_factors_equal_a_formula(variant, schedule):
    values = variant(jax.vmap(schedule))(jnp.asarray(PROGRESS, jnp.float32))
    expected = [oracle(schedule, p) for p in PROGRESS]
    chex.assert_trees_all_close(values, np.array(expected), rtol=0, atol=1e-6)
    chex.assert_type(values, jnp.float32)


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
    chex.assert_trees_all_close(factors, np.array([0.75, 0.5]), rtol=1e-6)


def test_the_clip_range_is_warmed_up():
    """PROP-5.6: .18 → .10 over 16 of 160 updates."""
    ramp = Ramp(initial=1.8, final=1.0, length=0.1)
    got = [float(0.1 * ramp(u / 160)) for u in (0, 8, 16, 17, 160)]
    chex.assert_trees_all_close(got, [0.18, 0.14, 0.1, 0.1, 0.1], rtol=1e-6)


def test_a_coefficient_is_held_and_then_decays():
    """PROP-8.4: held for 200 000 of 1 250 000 steps, then decays over 800 000."""
    ramp = Ramp(initial=1.0, final=0.0, begin=0.16, length=0.64)
    steps = np.array([0, 2e5, 6e5, 1e6, 1.25e6])
    got = jax.vmap(ramp)(jnp.asarray(steps / 1.25e6, jnp.float32))
    chex.assert_trees_all_close(
        0.7 * got, np.array([0.7, 0.7, 0.35, 0.0, 0.0]), rtol=0, atol=1e-6
    )


def test_a_floor_holds_what_falls():
    """Not what is still to rise."""
    bounded = Bounded(Warmup(fraction=0.5, then=Linear()), floor=0.2)
    held = {p: bool(bounded.held(p)) for p in (0.0, 0.05, 0.5, 0.85, 0.95, 1.0)}
    assert [p for p, is_held in held.items() if is_held] == [0.95, 1.0]
    assert Bounded(Ramp(0.1, 0.1), floor=0.2).held(0.0)


def test_a_rise_of_no_length_is_a_step():
    with jax.debug_nans(True):
        got = rise(jnp.array([-1.0, -1e-6, 0.0, 1.0]), 0.0)
    chex.assert_trees_all_equal(got, np.array([0.0, 0.0, 1.0, 1.0]))


def test_ramps_of_members():
    """PROP-5.6: each with its own start, one of no length."""
    ramps = jax.vmap(lambda x, n: as_arrays(Ramp(x, 1.0, 0.0, n)))(
        jnp.array([1.8, 3.0]), jnp.array([0.2, 0.0])
    )
    got = jax.jit(jax.vmap(lambda ramp: ramp(0.1)))(ramps)
    chex.assert_trees_all_close(got, np.array([1.4, 1.0]), rtol=1e-6)


@pytest.mark.parametrize("field", ["initial", "final", "begin", "length"])
def test_a_ramp_has_finite_numbers(field):
    with pytest.raises(ValueError, match=rf"Ramp\.{field}: expected a finite"):
        Ramp(**{field: -0.1})


@pytest.mark.parametrize("kind", [Linear, Cosine])
@pytest.mark.parametrize("final", [-0.1, math.inf, math.nan])
def test_a_final_factor_is_finite_and_not_negative(kind, final):
    with pytest.raises(ValueError, match=rf"{kind.__name__}\.final: expected a finite"):
        kind(final=final)


@pytest.mark.parametrize("fraction", [-0.1, 1.0, math.nan])
def test_a_warmup_leaves_something_of_training(fraction):
    with pytest.raises(ValueError, match=r"Warmup\.fraction: expected a number"):
        Warmup(fraction=fraction)


@pytest.mark.parametrize(
    ("bounds", "said"),
    [
        ({"floor": -0.1}, r"Bounded\.floor: expected a finite number ≥ 0"),
        ({"floor": 0.5, "cap": 0.4}, r"Bounded\.cap: expected a number ≥ floor = 0.5"),
    ],
)
def test_something_is_between_bounds(bounds, said):
    """PROP-17.2."""
    with pytest.raises(ValueError, match=said):
        Bounded(**bounds)


def test_a_schedule_of_ones_own():
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


@component
class Saying(Schedule):
    """Says what it is told to say."""

    words: object = None
    held_by: object = None

    def __call__(self, progress):
        return self.words

    def held(self, progress):
        return self.held_by


ASKED = {
    "schedules.Warmup": lambda schedule: Warmup(then=schedule)(0.5),
    "schedules.Bounded": lambda schedule: Bounded(schedule)(0.5),
    "schedules.Bounded.held": lambda schedule: Bounded(schedule).held(0.5),
    "optimizers": lambda schedule: Adam(schedule=schedule).step_size(Progress.at(0.5)),
    "attacks": lambda schedule: Fgsm(schedule=schedule).at(0.5),
    "terms": lambda schedule: Surrogate(clip_schedule=schedule)(
        forward(), minibatch(), context()
    ),
}


@pytest.mark.parametrize("asked", ASKED)
@pytest.mark.parametrize(
    ("words", "got"), [(None, "None"), (jnp.ones(2), r"float32\[2\]"), ("1", "a str")]
)
def test_a_schedule_says_a_number(asked, words, got):
    """Whoever asks it; a number of Python is one."""
    said = rf"^Saying: expected the shape \(\), the factor at a progress, got {got}$"
    with pytest.raises(Misfit, match=said):
        ASKED[asked](Saying(words))
    assert factor(Saying(0.5), 0.1) == factor(Saying(jnp.float32(0.5)), 0.1) == 0.5


@pytest.mark.parametrize("held", [None, 0.0, jnp.zeros(()), jnp.zeros(2, bool)])
def test_whether_a_floor_holds_is_a_flag(held):
    with pytest.raises(Misfit, match=r"^Saying\.held: expected the shape \(\), wheth"):
        Adam(schedule=Saying(1.0, held)).rate_metrics((), Progress.at(0.5))

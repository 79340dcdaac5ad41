"""Ranges of numbers: bounds, laws of samples, and neighbours."""

import functools

import chex
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

from ppo_jax.pbt.ranges import Choice, LogUniform, NearOne, Range, Uniform

RANGES = [
    LogUniform(1e-5, 5e-4),
    Uniform(0.05, 0.3, factor=1.1, resample=0.2),
    Uniform(-400.0, 100.0),
    Uniform(0.0, 1.0),
    Choice((4.0, 1.0, 2.0)),
    Uniform(0.9, 0.999),
    LogUniform(1.0, 1.1),
    NearOne(0.9, 0.999),
]
each_range = pytest.mark.parametrize("range_", RANGES, ids=repr)


@functools.partial(jax.jit, static_argnums=0)
def samples(range_, keys):
    return jax.vmap(range_.sample)(keys)


@functools.partial(jax.jit, static_argnums=0)
def neighbours(range_, values):
    """Down and up, `[2, n]`."""
    return jax.vmap(lambda up: jax.vmap(lambda x: range_.perturb(x, up))(values))(
        jnp.array([False, True])
    )


def ends(range_):
    if isinstance(range_, Choice):
        return min(range_.values), max(range_.values)
    return range_.low, range_.high


@each_range
def test_numbers_stay_in_their_range(range_):
    """Samples, and neighbours even of numbers that were outside."""
    low, high = np.float32(ends(range_))
    drawn = np.asarray(samples(range_, jax.random.split(jax.random.key(0), 2_000)))
    chex.assert_type(drawn, np.float32)
    assert (drawn >= low).all()
    assert (drawn <= high).all()
    outside = jnp.array([low, high, low - 1, high + 1, 0.0, -1e6, 1e6])
    moved = neighbours(range_, jnp.concatenate([drawn, outside]))
    assert (moved >= low).all()
    assert (moved <= high).all()


def test_samples_follow_their_law():
    """Kolmogorov–Smirnov: log-uniform, uniform; each choice as likely."""
    keys = jax.random.split(jax.random.key(1), 4_000)
    drawn = np.log(np.asarray(samples(RANGES[0], keys), np.float64))
    law = stats.uniform(np.log(1e-5), np.log(50)).cdf
    assert stats.kstest(drawn, law).pvalue > 0.01
    drawn = np.asarray(samples(RANGES[2], keys), np.float64)
    assert stats.kstest(drawn, stats.uniform(-400, 500).cdf).pvalue > 0.01
    drawn = np.log10(1 - np.asarray(samples(NearOne(0.9, 0.999), keys), np.float64))
    assert stats.kstest(drawn, stats.uniform(-3, 2).cdf).pvalue > 0.01
    drawn = np.asarray(samples(RANGES[4], keys))
    counts = [np.sum(drawn == value) for value in (4.0, 1.0, 2.0)]
    assert stats.chisquare(counts).pvalue > 0.01


@pytest.mark.parametrize("range_", RANGES[:2], ids=repr)
def test_a_neighbour_is_a_factor_away(range_):
    """Exactly v · f and v / f, where they are in the range."""
    values = np.geomspace(range_.low * 1.3, range_.high / 1.3, 50).astype(np.float32)
    down, up = neighbours(range_, jnp.asarray(values))
    factor = np.float32(range_.factor)
    chex.assert_trees_all_close(down, values / factor, rtol=2e-7)
    chex.assert_trees_all_close(up, values * factor, rtol=2e-7)
    low, high = np.float32([range_.low, range_.high])
    chex.assert_trees_all_equal(
        neighbours(range_, jnp.array([low, high])),
        np.array([[low, high / factor], [low * factor, high]]),
    )


def test_without_a_ratio_a_neighbour_is_a_step_away():
    """Ranges around or at 0: a fifth of the width, and 0 is no trap."""
    moved = neighbours(RANGES[2], jnp.array([0.0, -390.0, 50.0]))
    chex.assert_trees_all_close(
        moved, np.array([[-100, -400, -50], [100, -290, 100]]), rtol=1e-5
    )
    moved = neighbours(RANGES[3], jnp.array([0.0, 0.5]))
    chex.assert_trees_all_close(moved, np.array([[0.0, 0.3], [0.2, 0.7]]), rtol=1e-5)


@pytest.mark.parametrize(
    ("range_", "values", "moved"),
    [
        (Uniform(0.9, 0.999), [0.9, 0.95], [[0.9, 0.9302], [0.9198, 0.9698]]),
        (Uniform(0.8, 1.0), [1.0, 0.9], [[0.96, 0.86], [1.0, 0.94]]),
        (Uniform(0.9, 0.999, factor=1.1), [0.95], [[0.9401], [0.9599]]),
        (Uniform(1.0, 3.0, factor=2.0), [2.0], [[1.6], [2.4]]),
        (Uniform(-1.0, 1.0, factor=9.0), [0.5], [[0.1], [0.9]]),
        (LogUniform(1.0, 1.21), [1.1], [[1.1 / 1.21**0.2], [1.1 * 1.21**0.2]]),
    ],
    ids=repr,
)
def test_a_range_that_two_factors_cross_is_moved_in_by_its_width(range_, values, moved):
    """By (factor − 1) of it, at most a fifth; on a log-scale by that power of it."""
    got = neighbours(range_, jnp.array(values))
    chex.assert_trees_all_close(got, np.array(moved), rtol=1e-5)


@pytest.mark.parametrize(
    ("range_", "narrow"),
    [
        (Uniform(0.9, 0.999), True),
        (Uniform(0.8, 1.0), True),
        (LogUniform(1e-3, 1.4e-3), True),
        (NearOne(0.99, 0.992), True),
        (NearOne(0.9, 0.999), False),
        (Uniform(0.8, 0.999, factor=1.02), False),
        (Uniform(1.0, 1.5), False),
        (Uniform(-0.1, 0.1), False),
        (Uniform(-2.0, -1.9), False),
        (Choice((0.99, 0.999)), False),
        # The recipe's own.
        (LogUniform(1e-5, 5e-4), False),
        (Uniform(1e-4, 1e-2), False),
        (Uniform(0.05, 0.3, factor=1.1), False),
        (Uniform(0.01, 0.15, factor=1.15), False),
        (Uniform(0.2, 0.8, factor=1.1), False),
        (Uniform(0.01, 0.5), False),
    ],
    ids=repr,
)
def test_a_range_is_narrow_if_two_factors_cross_it(range_, narrow):
    assert range_.narrow == narrow


def test_near_one_a_neighbour_is_a_factor_nearer_or_farther():
    """1 − x is multiplied or divided."""
    values = np.array([0.95, 0.99, 0.998])
    down, up = neighbours(NearOne(0.9, 0.999), jnp.asarray(values, jnp.float32))
    chex.assert_trees_all_close(1 - down, (1 - values) * 1.2, rtol=1e-3)
    chex.assert_trees_all_close(1 - up, (1 - values) / 1.2, rtol=1e-3)


def test_a_choice_moves_to_the_next_one_and_never_around():
    """In the given order; a number that is none of them counts as the nearest."""
    moved = neighbours(RANGES[4], jnp.array([4.0, 1.0, 2.0, 2.9]))
    chex.assert_trees_all_equal(moved, np.array([[4, 4, 1, 1], [1, 2, 2, 2]]))


@pytest.mark.parametrize(
    "make",
    [
        lambda: Uniform(1.0, 1.0),
        lambda: Uniform(2.0, 1.0),
        lambda: Uniform(0.0, np.inf),
        lambda: Uniform(np.nan, 1.0),
        lambda: Uniform(0.0, 1.0, factor=1.0),
        lambda: Uniform(0.0, 1.0, resample=1.5),
        lambda: LogUniform(0.0, 1.0),
        lambda: LogUniform(-1.0, 1.0),
        lambda: NearOne(0.9, 1.0),
        lambda: Choice((1.0,)),
        lambda: Choice((1.0, 1.0)),
        lambda: Choice((1.0, np.nan)),
        lambda: Choice((1.0, 2.0), resample=-0.1),
    ],
)
def test_impossible_ranges_are_errors(make):
    with pytest.raises(ValueError, match="expected"):
        make()


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda: LogUniform("1e-5", 1.0), "LogUniform.low: expected float, got '1e-5'"),
        (lambda: Uniform(0.0, None), "Uniform.high: expected float, got None"),
        (lambda: NearOne(np.ones(2), 1.0), r"NearOne.low: .* float, got .1.0, 1.0"),
        (lambda: Uniform(0.0, 1.0, factor="2"), "Uniform.factor: expected float, got"),
        (lambda: Uniform(0.0, 1.0, resample="x"), "Uniform.resample: expected float"),
        (lambda: Choice(3.0), r"Choice.values: expected tuple\[float, ...\], got 3.0"),
        (lambda: Choice(("1", "2")), "Choice.values: expected tuple"),
        (lambda: Choice((True, False)), "Choice.values: expected tuple"),
    ],
)
def test_what_is_no_number_is_named(make, said):
    with pytest.raises(TypeError, match=said):
        make()


def test_arrays_are_taken_for_their_numbers():
    assert Choice(np.array([1, 2], np.float32)) == Choice([1.0, jnp.array(2)])  # pyright: ignore
    assert repr(Uniform(np.float32(0), jnp.array(1))) == (  # pyright: ignore
        "Uniform(resample=0.25, low=0.0, high=1, factor=1.2)"
    )


def test_a_range_has_to_say_what_it_does(key):
    with pytest.raises(NotImplementedError):
        Range().sample(key)
    with pytest.raises(NotImplementedError):
        Range().perturb(jnp.zeros(()), jnp.array(True))

"""One number of a phase, against NumPy in float64."""

import math

import numpy as np
import pytest

from ppo_jax.metrics import Reduction, reductions

NAN = np.nan
X = np.array([3.0, NAN, -1.0, 0.5], np.float32)
COUNT = np.array([2, 5, 0, 4])


@pytest.mark.parametrize(
    ("reduction", "values", "want"),
    [
        ("MEAN", [X], 2.5 / 3),
        ("SUM", [X], 2.5),
        ("LARGEST", [X], 3.0),
        ("LARGEST", [-np.abs(X)], -0.5),
        ("QUOTIENT", [X, COUNT], 2.5 / 11),
        ("ANY", [COUNT], 1.0),
        ("ANY", [[0.0, NAN, 0.0]], 0.0),
        ("RATIO", [[4.0, 2.0], [1.0, 0.5]], 4.0),
        ("RATIO", [[1.0, 1.0], [1e-9, 1e-9]], NAN),
        ("RATIO", [[1e-9, 1e-9], [1.0, 1.0]], NAN),
        ("SHORTFALL", [[-1.0, -1.0, -1.0], [-3.0, 0.0, NAN]], 1.0),
        ("PRODUCT", [X, COUNT], 3 * 2 + 0.5 * 4),
        ("STEPS_WITH", [[0.0, 0.2, 0.7], [3, 4, 5]], 9.0),
        ("HOST", [[7.0]], 7.0),
    ],
)
def test_what_is_known_is_reduced(reduction, values, want):
    """NaN is unavailable, and skipped; what is not there at all is NaN."""
    got = getattr(reductions, reduction).of(*map(np.asarray, values))
    assert isinstance(got, float)
    assert got == pytest.approx(want, rel=1e-6, nan_ok=True)


def known(values):
    values = np.asarray(values, np.float64)
    return values[~np.isnan(values)]


def mean(values):
    return known(values).mean() if known(values).size else NAN


def total(values):
    return known(values).sum()


def quotient(above, below):
    return total(above) / total(below) if total(below) else NAN


def deviation(squares, values, counts):
    means = values / np.maximum(counts, 1.0)
    between = counts * (means - quotient(values, counts)) ** 2
    return math.sqrt(quotient(squares + between, counts))


def ratio(above, below):
    exists = mean(above) > 1e-8 and mean(below) > 1e-8
    return mean(above) / mean(below) if exists else NAN


ALONE = {
    "MEAN": (mean, 1),
    "SUM": (total, 1),
    "LARGEST": (lambda x: known(x).max() if known(x).size else NAN, 1),
    "QUOTIENT": (quotient, 2),
    "DEVIATION": (deviation, 3),
    "ANY": (lambda x: total(x) > 0, 1),
    "RATIO": (ratio, 2),
    "SHORTFALL": (lambda x, y: mean(np.maximum(x - y, 0.0)), 2),
    "PRODUCT": (lambda x, y: total(x * y), 2),
    "STEPS_WITH": (lambda x, y: total((x > 0) * y), 2),
    "HOST": (mean, 1),
}
"""What a reduction makes of a vector, and how many it takes."""


@pytest.mark.parametrize("name", ALONE)
@pytest.mark.parametrize("size", [1, 9, 150])
def test_members_at_once_are_reduced_as_each_alone(name, size):
    """To the last bit, with as many unavailable values as there may be."""
    of, count = ALONE[name]
    rng = np.random.default_rng(size)
    shape, missing = (count, size, 40), rng.integers(0, 4, 40) / 3
    values = rng.lognormal(0.0, 4.0, shape)
    values = np.where(rng.random(shape) < missing, NAN, values)
    values[-1, :, :3] = 0.0
    reduced = getattr(reductions, name).over(*values)
    expected = [of(*values[:, :, member]) for member in range(40)]
    np.testing.assert_array_equal(reduced, np.array(expected, np.float64))


def test_every_reduction_takes_members_at_once():
    """But one from outside may know vectors only."""
    ours = {k for k, x in vars(reductions).items() if isinstance(x, Reduction)}
    assert ours == ALONE.keys()
    values = np.array([[1.0, 4.0], [2.0, 9.0], [6.0, 5.0]])
    said = Reduction("middle", lambda x: sorted(x)[1]).over(values)
    np.testing.assert_array_equal(said, [2.0, 5.0])


def test_a_deviation_of_all_is_that_of_the_samples():
    """From sums of each update, as if all samples were there at once."""
    rng = np.random.default_rng(0)
    parts = [rng.normal(1e6, 2.0, size) for size in (5, 1, 40, 0)]
    squares = [np.sum((x - x.mean()) ** 2) if x.size else 0.0 for x in parts]
    totals, counts = [x.sum() for x in parts], [x.size for x in parts]
    want = np.concatenate(parts).std()
    assert reductions.DEVIATION.of(squares, totals, counts) == pytest.approx(want)


def test_a_deviation_of_what_is_all_alike_is_zero():
    assert reductions.DEVIATION.of([0.0, 0.0], [0.25, 0.5], [1, 2]) == 0.0


@pytest.mark.parametrize("name", ["MEAN", "LARGEST", "HOST"])
@pytest.mark.parametrize("values", [[], [NAN, NAN]])
def test_of_nothing_there_is_no_number(name, values):
    assert np.isnan(getattr(reductions, name).of(np.array(values)))


def test_a_quotient_by_nothing_is_no_number():
    assert np.isnan(reductions.QUOTIENT.of(np.zeros(2), np.zeros(2, int)))
    assert np.isnan(reductions.DEVIATION.of(np.zeros(2), np.zeros(2), np.zeros(2)))
    assert reductions.SUM.of(np.array([NAN])) == 0.0


def test_counts_do_not_lose_a_bit():
    """2²⁴ + 1 is no float32."""
    assert reductions.SUM.of(np.array([2**24, 1], np.float32)) == 2**24 + 1

"""One number of a phase, against NumPy in float64."""

import numpy as np
import pytest

from ppo_jax.metrics import reductions

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

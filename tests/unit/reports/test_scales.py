"""Axes: every value has a place, and ticks are round numbers at theirs."""

import math

import numpy as np
import pytest

from ppo_jax.reports.scales import Scale, nice, scale_of, written

SPANS = [
    [0.0, 1.0],
    [-3.0, 1e-9],
    [1e6, 1e6],
    [0.0, 0.0],
    [1e-300, 2e-300],
    [-1e299, 1e299],
    [5.0, 5.0 + 1e-12],
    [math.nan, math.inf],
    [],
]


@pytest.mark.parametrize("values", SPANS, ids=str)
@pytest.mark.parametrize("log", [False, True])
def test_all_that_is_finite_has_a_place(values, log):
    scale = scale_of([np.array(values)], log)
    known = [x for x in values if math.isfinite(x) and (x > 0 or not scale.log)]
    places = scale.place(np.array(known))
    assert ((places >= 0) & (places <= 1)).all()
    for count in (3, 5):
        ticks = scale.ticks(count)
        assert len(ticks) <= 2 * count + 2
        inside = scale.place(np.array([value for value, _ in ticks]))
        assert ((inside >= -1e-6) & (inside <= 1 + 1e-6)).all()


def test_ticks_are_where_they_say():
    """A label is read back as the value that it stands beside."""
    units = {"k": 1e3, "M": 1e6}
    for low, high in ((0.0, 1.0), (-0.03, 0.02), (0.0, 123_456.0), (2e6, 9e6)):
        ticks = Scale(low, high).ticks()
        assert len(ticks) >= 3
        for value, label in ticks:
            text = label.replace("−", "-")
            unit = units.get(text[-1], 1.0)
            assert float(text.rstrip("kM")) * unit == pytest.approx(value)


@pytest.mark.parametrize("low", [0.0, -7.3, 1e-9, 123.0])
@pytest.mark.parametrize("width", [1e-6, 0.3, 1.0, 7.0, 1e9])
def test_ticks_are_few_and_inside(low, width):
    found = [value for value, _ in Scale(low, low + width).ticks()]
    assert 2 <= len(found) <= 7
    assert low - 1e-6 * width <= found[0] and found[-1] <= low + width * (1 + 1e-6)


@pytest.mark.parametrize("step", [1e-12, 0.019, 0.02, 3.0, 7.1, 99.0, 1e17])
def test_a_nice_step_is_the_next_one_two_or_five(step):
    powers = [m * 10.0**i for i in range(-13, 20) for m in (1, 2, 5)]
    assert nice(step) == pytest.approx(min(x for x in powers if x >= step * (1 - 1e-9)))


def test_labels_tell_ticks_apart():
    """On an axis that is far from zero and short."""
    ticks = Scale(0.98431, 0.98434).ticks()
    assert len({label for _, label in ticks}) == len(ticks) > 1
    assert [float(label) for _, label in ticks] == [value for value, _ in ticks]


@pytest.mark.parametrize("low", [2e10, -2e10, 2e-6])
def test_labels_with_powers_of_ten_tell_ticks_apart(low):
    ticks = Scale(low, low + 1e-8 * abs(low)).ticks()
    assert len({label for _, label in ticks}) == len(ticks) > 1


def test_powers_of_ten_on_a_wide_axis():
    scale = scale_of([np.array([1e-6, 1e3])], log=True)
    labels = [label for _, label in scale.ticks()]
    assert labels == ["10⁻⁶", "10⁻⁴", "0.01", "1", "100"]


def test_what_is_unknown_is_a_dash():
    assert written(math.nan) == written(-math.inf) == "–"
    assert written(0.0) == "0" and written(-0.5) == "−0.5"


def test_numbers_are_rounded_before_they_are_written():
    rounded = 0.00099999, 9999.7, -999_980.0, 9.9999e8
    assert [*map(written, rounded)] == ["0.001", "10k", "−1M", "10⁹"]

"""A long curve is in as little room as a short one, and ends where it does."""

import itertools

import pytest

from ppo_jax.monitoring.curve import Curve


@pytest.mark.parametrize("count", [1, 2, 7, 8, 9, 1000, 4097])
def test_points_are_spread_evenly_from_the_first_to_the_last(count):
    curve = Curve(most=8)
    for step in range(count):
        curve.add(step, float(-step))
    steps = [step for step, _ in curve]
    assert steps[0] == 0 and steps[-1] == count - 1 and len(steps) <= 9
    gaps = {after - before for before, after in itertools.pairwise(steps[:-1])}
    assert len(gaps) <= 1 and all(y == -x for x, y in curve)


def test_nothing_has_no_points():
    assert not list(Curve()) and Curve().last is None

"""Rows that have their condition in common, and names that fit one."""

import pytest

from ppo_jax.metrics.reductions import HOST, LARGEST, MEAN
from ppo_jax.metrics.rows import NO_STEP, NO_WEIGHT, host, match, stepped, weighed


@pytest.mark.parametrize(
    ("pattern", "name", "found"),
    [
        ("train/loss", "train/loss", ""),
        ("train/loss", "train/losses", None),
        ("a/*_norm", "a/layer0_norm", "layer0"),
        ("a/*_norm", "a/_norm", None),
        ("a/*_norm", "b/x_norm", None),
        ("a/*_norm", "a/x_norms", None),
        ("a/*", "a/b/c", "b/c"),
        ("a*a", "a", None),
        ("a*a", "aa", None),
        ("a*a", "aba", "b"),
    ],
)
def test_a_star_stands_for_something(pattern, name, found):
    assert match(pattern, name) == found


def test_rows_say_when_they_are_unavailable():
    assert weighed("a", "1", "A.").null == NO_WEIGHT
    row = stepped("a", "1", "A.", reduction=LARGEST)
    assert (row.null, row.reduction) == (NO_STEP, LARGEST)
    assert host("a", "1", "A.").reduction is HOST
    assert weighed("a", "1", "A.").reduction is MEAN

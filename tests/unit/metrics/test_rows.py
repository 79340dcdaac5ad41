"""Rows that have their condition in common, and names that fit one."""

import pytest

from ppo_jax.metrics.reductions import LARGEST, MEAN
from ppo_jax.metrics.rows import NO_STEP, NO_WEIGHT, match, rows, stepped, weighed


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
    (row,) = weighed("a [1]: A.")
    assert (row.name, row.unit, row.meaning) == ("a", "1", "A.")
    assert (row.null, row.reduction) == (NO_WEIGHT, MEAN)
    (row,) = stepped("a: A.", LARGEST)
    assert (row.null, row.reduction) == (NO_STEP, LARGEST)


def test_a_row_is_a_line_and_what_hangs_below_it():
    """Sources belong to all; a condition of one is its own."""
    text = """
    a/* [nats] with `Kl`: What it is,
        and what not: nothing.
    b: Another.
    """
    first, second = rows(text, LARGEST, "x", "y", needs="`Value`")
    assert first.meaning == "What it is, and what not: nothing."
    assert (first.name, first.unit, first.needs) == ("a/*", "nats", "`Kl`")
    assert (second.name, second.unit, second.needs) == ("b", "", "`Value`")
    assert first.sources == second.sources == ("x", "y")

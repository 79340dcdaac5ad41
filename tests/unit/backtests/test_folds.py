"""Folds: what comes after what, and how many bars there are between."""

import itertools
import re

import pytest

from ppo_jax.backtests.folds import Shape, Span, walk

WHOLE = Span(20, 1000)


@pytest.mark.parametrize("rolling", [False, True])
def test_each_span_is_after_the_one_before_with_its_gap(rolling):
    found = walk(WHOLE, Shape(4, 300, 50, 7, 9, rolling))
    assert len(found) == 4 and found[-1].test.last == WHOLE.last
    for fold in found:
        assert fold.validation.first - fold.train.last == 7
        assert fold.test.first - fold.validation.last == 9
        assert fold.validation.bars == 50 and fold.test.bars == (980 - 366) // 4
        assert WHOLE.first <= fold.train.first and fold.train.bars >= 300
    for one, after in itertools.pairwise(found):
        assert one.test.last == after.test.first


def test_training_grows_or_rolls():
    grows = walk(WHOLE, Shape(3, 300, 50, 5, 5))
    assert {fold.train.first for fold in grows} == {WHOLE.first}
    rolls = walk(WHOLE, Shape(3, 300, 50, 5, 5, rolling=True))
    assert {fold.train.bars for fold in rolls} == {300}
    assert [a.test for a in grows] == [b.test for b in rolls]


@pytest.mark.parametrize(
    ("shape", "said"),
    [
        (Shape(folds=0), "folds: expected at least 1, got 0"),
        (Shape(train=0), "train: expected at least 1"),
        (Shape(purge=-1), "purge: expected 0 to 252"),
        (Shape(purge=253), "purge: expected 0 to 252, the bars of the shortest span"),
        (Shape(embargo=300), "embargo: expected 0 to 252"),
        (Shape(2, 900, 70, 5, 5), "folds: expected at most 0, as 980 bars less 980"),
        (Shape(50, 800, 90, 5, 5), "folds: expected at most 40, as 980 bars"),
    ],
)
def test_what_does_not_fit_is_told(shape, said):
    with pytest.raises(ValueError, match=re.escape(said)):
        walk(WHOLE, shape)

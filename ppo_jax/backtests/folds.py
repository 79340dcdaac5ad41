"""Walking forward: bars for training, selection and tests, in this order.

    ├──────── train ────────┤ purge ├ validation ┤ embargo ├──── test ────┤
                                                           ├ the next one's …

Tests follow each other without a gap, to the last bar, so that they are one track.
"""

from typing import NamedTuple

from ppo_jax.component import require


class Span(NamedTuple):
    """Bars from `first` to before `last`."""

    first: int
    last: int

    @property
    def bars(self) -> int:
        """The number of bars."""
        return self.last - self.first


class Fold(NamedTuple):
    """Three spans, each after the one before."""

    train: Span
    validation: Span
    test: Span


class Shape(NamedTuple):
    """Sizes by which bars are cut into folds."""

    folds: int = 5
    train: int = 1260
    """Bars of the first fold's training; of every fold's, if it is rolling."""
    validation: int = 252
    purge: int = 5
    """Bars left out between training and validation."""
    embargo: int = 5
    """Bars left out between validation and test."""
    rolling: bool = False
    """Whether training forgets its oldest bars; otherwise it grows."""


def walk(whole: Span, shape: Shape) -> list[Fold]:
    """Cuts bars into folds; bars that tests leave over go to the first training.

    Args:
        whole: All bars that there are to use.
        shape: Sizes of the folds.

    Raises:
        ValueError: If they cannot be cut so; the message names the field.

    >>> for fold in walk(Span(0, 100), Shape(2, 50, 10, 3, 2)):
    ...     print(*(f"{first}:{last}" for first, last in fold))
    0:51 54:64 66:83
    0:68 71:81 83:100
    """
    for name in ("folds", "train", "validation"):
        require(getattr(shape, name) >= 1, name, getattr(shape, name), "at least 1")
    for name in ("purge", "embargo"):
        gap, most = getattr(shape, name), min(shape.train, shape.validation)
        expected = f"0 to {most}, the bars of the shortest span before a test"
        require(0 <= gap <= most, name, gap, expected)
    before = shape.train + shape.purge + shape.validation + shape.embargo
    bars = (whole.bars - before) // shape.folds
    expected = (
        f"at most {max(0, (whole.bars - before) // 2)}, as {whole.bars} bars less "
        f"{before} before the first test are to have 2 for each"
    )
    require(bars >= 2, "folds", shape.folds, expected)
    first = whole.last - shape.folds * bars
    return [_fold(whole, shape, first + i * bars, bars) for i in range(shape.folds)]


def _fold(whole: Span, shape: Shape, test: int, bars: int) -> Fold:
    """Returns the fold whose test begins at a bar."""
    selected = test - shape.embargo
    learned = selected - shape.validation - shape.purge
    begin = learned - shape.train if shape.rolling else whole.first
    return Fold(
        Span(begin, learned),
        Span(selected - shape.validation, selected),
        Span(test, test + bars),
    )

"""Intervals for measures of a series whose neighbours depend on each other.

References:
    Politis and Romano, `The Stationary Bootstrap`, 1994.
"""

from collections.abc import Callable

import numpy as np

DRAWS, LEVEL = 1000, 0.95
BLOCK = 20.0
"""Mean bars of a block, a month: returns hardly depend for longer, volatility does."""
CHUNK = 50
"""Number of series that are drawn at once, to save memory."""


def places(
    random: np.random.Generator, draws: int, length: int, block: float = BLOCK
) -> np.ndarray:
    """Draws places in a series of `length` that make new series, `[draws, length]`.

    Each place follows the one before, around the end, but with probability 1 / `block`
    it is drawn from all places.

    >>> drawn = places(np.random.default_rng(0), 1, 6, block=1e9)[0]
    >>> np.unique(np.diff(drawn) % 6).tolist()
    [1]
    """
    begins = random.random((draws, length)) < 1 / block
    begins[:, 0] = True
    fresh = random.integers(length, size=(draws, length))
    times = np.broadcast_to(np.arange(length), begins.shape)
    since = np.maximum.accumulate(np.where(begins, times, 0), axis=1)
    return (np.take_along_axis(fresh, since, axis=1) + times - since) % length


def interval(
    measure: Callable[..., np.ndarray],
    *series: np.ndarray,
    draws: int = DRAWS,
    block: float = BLOCK,
    level: float = LEVEL,
    seed: int = 0,
) -> tuple[float, float]:
    """Returns the percentile interval of a measure of one track, over bars like these.

    Each draw picks one of the tracks, and then blocks of its bars.

    Args:
        measure: A function of series that reduces their last axis.
        series: Arguments of the measure, `[tracks, T]` each; the same track and the
            same bars are drawn of all.
        draws: The number of draws.
        block: Mean length of a block, in bars.
        level: Share of draws that the interval holds.
        seed: The seed of the draws.

    >>> interval(lambda x: x.mean(axis=-1), np.ones((1, 9)))
    (1.0, 1.0)
    """
    random, (tracks, length) = np.random.default_rng(seed), series[0].shape
    values = []
    for begin in range(0, draws, CHUNK):
        count = min(CHUNK, draws - begin)
        track = random.integers(tracks, size=(count, 1))
        drawn = places(random, count, length, block)
        values.append(measure(*(each[track, drawn] for each in series)))
    known = np.concatenate(values)
    known = known[np.isfinite(known)]
    if not known.size:
        return float("nan"), float("nan")
    low, high = np.quantile(known, [(1 - level) / 2, (1 + level) / 2])
    return float(low), float(high)

"""Aggregates of the scores of several runs, and their intervals.

Scores are `[..., runs, tasks]`, for one experiment a single task. A run that has no
finite score counts as worse than all that have one.

References:
    Agarwal et al., `Deep Reinforcement Learning at the Edge of the Statistical
    Precipice <https://arxiv.org/abs/2108.13264>`_, 2021.
"""

from collections.abc import Callable

import numpy as np


def interquartile_mean(scores: np.ndarray) -> np.ndarray:
    """Returns the mean of the middle half of all scores `[..., runs, tasks]`, `[...]`.

    Of n scores the ⌊n / 4⌋ lowest and as many of the highest are left out.

    >>> float(interquartile_mean(np.array([[0.0], [1.0], [3.0], [100.0]])))
    2.0
    """
    scores = _comparable(scores)
    flat = np.sort(scores.reshape(*scores.shape[:-2], -1), axis=-1)
    cut = flat.shape[-1] // 4
    return flat[..., cut : flat.shape[-1] - cut].mean(axis=-1)


def probability_of_improvement(ours: np.ndarray, theirs: np.ndarray) -> np.ndarray:
    """Returns the probability that a run of ours beats one of theirs, `[...]`.

    This is the Mann-Whitney U statistic over the number of pairs, as a mean over tasks;
    a tie counts half.

    Args:
        ours: Scores `[..., runs, tasks]`, greater is better.
        theirs: Scores `[..., others, tasks]`.

    >>> ours, theirs = np.array([[1.0], [2.0]]), np.array([[0.0], [1.0]])
    >>> float(probability_of_improvement(ours, theirs))
    0.875
    """
    ours = _comparable(ours)[..., :, None, :]
    theirs = _comparable(theirs)[..., None, :, :]
    wins = (ours > theirs) + 0.5 * (ours == theirs)
    return wins.mean(axis=(-3, -2, -1))


def performance_profile(scores: np.ndarray, levels: np.ndarray) -> np.ndarray:
    """Returns the share of runs whose score is above a level, mean over tasks.

    Args:
        scores: `[..., runs, tasks]`.
        levels: One level `[]`, or several `[levels]`.

    Returns:
        `[...]`, or `[..., levels]`.

    >>> scores, levels = np.array([[1.0], [2.0]]), np.array([0.0, 1.0, 2.0])
    >>> performance_profile(scores, levels).tolist()
    [1.0, 0.5, 0.0]
    """
    scores = _comparable(scores)
    flat = scores.reshape(*scores.shape[:-2], *(1,) * np.ndim(levels), -1)
    return (flat > np.asarray(levels)[..., None]).mean(axis=-1)


def interval(
    statistic: Callable[..., np.ndarray],
    *scores: np.ndarray,
    level: float = 0.95,
    draws: int = 2000,
    seed: int = 0,
) -> tuple[float, float]:
    """Returns the percentile interval of a statistic by the stratified bootstrap.

    Runs are drawn with replacement, within every task by itself.

    Args:
        statistic: A function of scores with a leading axis of draws.
        scores: Its arguments, `[runs, tasks]` each.
        level: Share of draws that the interval holds.
        draws: The number of draws.
        seed: The seed of the draws.

    >>> interval(interquartile_mean, np.full((8, 1), 3.0))
    (3.0, 3.0)
    """
    random = np.random.default_rng(seed)
    drawn = [
        np.take_along_axis(
            x[None], random.integers(len(x), size=(draws, *x.shape)), axis=1
        )
        for x in scores
    ]
    values = np.sort(statistic(*drawn))
    ends = np.rint((draws - 1) * (0.5 + np.array([-0.5, 0.5]) * level)).astype(int)
    low, high = values[ends]
    return float(low), float(high)


def _comparable(scores: np.ndarray) -> np.ndarray:
    scores = np.asarray(scores, np.float64)
    return np.where(np.isfinite(scores), scores, -np.inf)

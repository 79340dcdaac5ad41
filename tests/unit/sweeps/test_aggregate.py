"""Scores of several runs, against scipy."""

import chex
import numpy as np
import pytest
from scipy import stats

from ppo_jax.sweeps.aggregate import (
    interquartile_mean,
    interval,
    performance_profile,
    probability_of_improvement,
)

RANDOM = np.random.default_rng(0)


@pytest.mark.parametrize("shape", [(1, 1), (3, 1), (10, 1), (7, 3), (32, 2)])
def test_interquartile_mean_is_a_trimmed_mean(shape):
    scores = RANDOM.normal(size=shape)
    expected = stats.trim_mean(scores, 0.25, axis=None)
    chex.assert_trees_all_close(interquartile_mean(scores), expected, rtol=1e-7)
    many = RANDOM.normal(size=(4, *shape))
    expected = [stats.trim_mean(each, 0.25, axis=None) for each in many]
    chex.assert_trees_all_close(interquartile_mean(many), np.array(expected), rtol=1e-7)


def test_probability_of_improvement_is_that_of_mann_and_whitney():
    ours, theirs = RANDOM.integers(0, 5, (9, 3)), RANDOM.integers(0, 6, (6, 3))
    expected = np.mean(
        [stats.mannwhitneyu(ours[:, i], theirs[:, i]).statistic / 54 for i in range(3)]
    )
    found = probability_of_improvement(ours, theirs)
    chex.assert_trees_all_close(found, expected, rtol=1e-7)
    chex.assert_trees_all_close(
        probability_of_improvement(theirs, ours), 1 - found, rtol=1e-7
    )


def test_the_profile_is_the_mean_over_tasks_of_shares_of_runs():
    """Of 5 runs and 3 tasks, one by one; a run that broke is above nothing."""
    scores = RANDOM.integers(0, 4, (2, 5, 3)).astype(float)
    scores[1, 2, 1] = np.nan
    levels = np.array([-1.0, 0.0, 1.5, 3.0])
    for level in levels:
        expected = [
            np.mean([np.mean([x > level for x in task]) for task in each.T])
            for each in scores
        ]
        found = performance_profile(scores, level)
        chex.assert_trees_all_close(found, np.array(expected), rtol=1e-7)
    alone = [performance_profile(scores, level) for level in levels]
    many = performance_profile(scores, levels)
    chex.assert_trees_all_close(many, np.stack(alone, axis=-1), rtol=1e-7)


def test_the_interval_is_that_of_the_bootstrap():
    """Of one task, by the percentile method."""
    scores = RANDOM.normal(size=(40, 1))

    def trimmed(x, axis):
        return stats.trim_mean(x, 0.25, axis=axis)

    theirs = stats.bootstrap(
        (scores[:, 0],), trimmed, n_resamples=20_000, method="percentile", rng=1
    ).confidence_interval
    ours = interval(interquartile_mean, scores, draws=20_000)
    chex.assert_trees_all_close(ours, tuple(theirs), rtol=0, atol=0.03)
    assert ours[0] < interquartile_mean(scores) < ours[1]


def test_tasks_are_drawn_apart():
    """Two tasks of the same scores are known √2 better than one; never mixed up."""
    one = RANDOM.normal(size=(64, 1))
    widths = [
        np.ptp(interval(interquartile_mean, np.tile(one, (1, tasks)), draws=8000))
        for tasks in (1, 2)
    ]
    chex.assert_trees_all_close(widths[1] / widths[0], np.sqrt(0.5), rtol=0.06)
    scores = np.tile([[0.0, 10.0]], (8, 1))
    assert interval(interquartile_mean, scores) == (5.0, 5.0)


def test_intervals_hold_the_truth_as_often_as_they_say():
    """80 %: 400 experiments, a standard deviation of 2 %; the bootstrap is narrow."""
    truth, held = 0.0, 0
    for seed in range(400):
        scores = np.random.default_rng(seed).normal(size=(24, 1))
        low, high = interval(interquartile_mean, scores, level=0.8, draws=200)
        held += low <= truth <= high
    assert 0.7 < held / 400 < 0.86


def test_the_interval_of_a_comparison_takes_both_sides_into_account():
    same = RANDOM.normal(size=(16, 1))
    better = same + 5.0
    assert interval(probability_of_improvement, better, same) == (1.0, 1.0)
    low, high = interval(probability_of_improvement, same, same[::-1].copy())
    assert 0.2 < low < 0.5 < high < 0.8


def test_a_run_without_a_score_is_the_worst():
    """A quarter of them moves the mean, more of them is no mean at all."""
    scores = np.array([[np.nan], [1.0], [2.0], [3.0]])
    assert interquartile_mean(scores) == 1.5
    scores[1] = np.inf
    assert interquartile_mean(scores) == -np.inf
    assert interval(interquartile_mean, scores)[0] == -np.inf
    assert probability_of_improvement(scores, np.full((4, 1), 0.0)) == 0.5

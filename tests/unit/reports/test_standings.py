"""Statistics of several runs in pictures, against plain NumPy and scipy."""

import numpy as np
import pytest
from reported import said
from scipy import stats

from ppo_jax.reports import standings
from ppo_jax.reports.charts import Band, Curve, Threads
from ppo_jax.reports.contenders import Contender, Trial
from ppo_jax.reports.elements import element
from ppo_jax.sweeps.scores import NARROW

RANDOM = np.random.default_rng(0)
STEPS = np.arange(1.0, 11.0) * 100


def contender(name, middle, runs=8, **setting):
    """Runs that end around a score."""
    scores = middle + RANDOM.normal(size=(runs, STEPS.size))
    trials = [Trial(f"seed {i}", STEPS, each) for i, each in enumerate(scores)]
    return Contender(name, trials, setting)


LOW, HIGH = contender("low", 0.0, gamma=0.5), contender("high", 5.0, gamma=0.75)
ALONE = contender("alone", 2.0, runs=1, gamma=0.25)


def scores(each):
    return np.array([trial.scores for trial in each.trials])


def test_the_standing_has_the_best_one_first():
    table, forest = standings.standing([LOW, HIGH, ALONE]).parts
    rows = [[said(cell) for cell in row] for row in table.iter("tr")][1:]
    assert [row[0] for row in rows] == ["high", "alone", "low"]
    assert "P(better than low)" in said(table)
    expected = stats.trim_mean(scores(HIGH)[:, -1], 0.25)
    assert float(rows[0][2]) == pytest.approx(expected, abs=0.01)
    assert rows[0][4] == "1.00" and rows[1][3:] == ["", "", ""]
    assert rows[2][3] and rows[2][4:] == ["", ""]  # It is the first.
    assert len([*forest.iter("svg")]) == 3


def test_the_standing_of_few_runs_says_so():
    few = [contender(str(i), float(i), runs=4) for i in range(2)]
    _, note, _ = standings.standing(few).parts
    assert said(note) == NARROW


def test_curves_are_interquartile_means_with_intervals():
    """At every step; of a run alone there is none."""
    chart, _ = standings.curves([LOW, ALONE], "score").parts[0].charts
    band, curve, alone = chart.marks
    expected = stats.trim_mean(scores(LOW), 0.25, axis=0)
    np.testing.assert_allclose(curve.y, expected)
    assert (
        isinstance(band, Band) and ((band.low < curve.y) & (curve.y < band.high)).all()
    )
    np.testing.assert_array_equal(alone.y, scores(ALONE)[0])


def test_runs_that_are_known_nowhere_together_are_curves_of_their_own():
    """One ended before the other was evaluated for the first time."""
    trials = [Trial("a", STEPS[:4], STEPS[:4]), Trial("b", STEPS[6:], STEPS[6:])]
    chart, _ = standings.curves([Contender("one", trials)], "score").parts[0].charts
    found = [(mark.name, mark.x.tolist()) for mark in chart.marks]
    assert found == [("one", STEPS[:4].tolist()), ("one", STEPS[6:].tolist())]


def test_the_profile_is_the_share_of_runs_above():
    """And its interval that of a share of eight."""
    *_, profile = standings.curves([LOW, HIGH], "score").parts[0].charts
    band, curve = profile.marks[:2]
    last = scores(LOW)[:, -1]
    expected = [(last > level).mean() for level in curve.x]
    np.testing.assert_allclose(curve.y, expected)
    assert curve.y[0] == 1 and profile.marks[3].y[-1] == 0
    half = stats.binom.ppf([0.025, 0.975], 8, 0.5) / 8
    middle = np.argmin(abs(curve.y - 0.5))
    assert curve.y[middle] == 0.5
    np.testing.assert_allclose([band.low[middle], band.high[middle]], half, atol=0.13)


def test_more_than_there_are_colours_for_are_faint():
    many = [contender(str(i), float(i), runs=2) for i in range(9)]
    chart, _ = standings.curves(many, "score").parts[0].charts
    assert isinstance(chart.marks[0], Threads) and len(chart.marks[0].lines) == 6
    assert sum(isinstance(mark, Curve) for mark in chart.marks) == 6


def test_probabilities_of_improvement_are_those_of_mann_and_whitney():
    near = contender("near", 0.5)
    text = said(element("div", standings.chances([LOW, near, ALONE]).parts))
    pairs = (scores(each)[:, -1] for each in (near, LOW))
    expected = stats.mannwhitneyu(*pairs).statistic / 64
    assert f"near over low {expected:.4g}," in text and "alone" not in text
    assert standings.chances([LOW, ALONE]) is None


def test_scores_over_what_a_sweep_varied():
    """A number that is the same in all says nothing, nor does what is no number."""
    (grid,) = standings.sensitivity([LOW, HIGH], "score").parts
    (points,) = grid.charts[0].marks
    assert set(points.x.tolist()) == {0.5, 0.75} and points.y.size == 16
    np.testing.assert_array_equal(points.y[:8], scores(LOW)[:, -1])
    assert standings.sensitivity([LOW, LOW], "score") is None
    words = contender("x", 0.0, env="a"), contender("y", 0.0, env="b")
    assert standings.sensitivity(words, "score") is None


def test_a_run_that_broke_has_the_worst_score():
    broken = Contender("broken", [Trial("x", STEPS, np.full(10, np.nan))] * 2)
    table, *_ = standings.standing([LOW, broken]).parts
    rows = [[said(cell) for cell in row] for row in table.iter("tr")][1:]
    assert rows[1][:3] == ["broken", "2", "–"] and rows[1][4] == "0.00"
    standings.curves([LOW, broken], "score")

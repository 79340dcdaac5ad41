"""Where the time went, added up by hand."""

import numpy as np
import pytest
from reported import generations, row, said, written

from ppo_jax.reports import records
from ppo_jax.reports.speed import section, times


def test_shares_of_the_time(tmp_path):
    """300 steps at 100 a second, 1 s of compiling, the rest of 10 s."""
    rows = [row(1), row(3) | {"time/time_elapsed": 10.0}]
    run = records.read(written(tmp_path, rows))
    assert times(run) == {
        "training": 3.0,
        "compiling": 1.0,
        "evaluations and the rest": 6.0,
    }
    bar, grid = section(run).parts
    assert "training: 3 s, 30% compiling: 1 s, 10%" in said(bar)
    widths = [float(rect.get("width")) for rect in bar.iter("rect")]
    assert widths == pytest.approx([300, 100, 600])
    assert [chart.title for chart in grid.charts] == ["Speed", "Steps over time"]


def test_steps_of_a_population_are_those_of_all_members(tmp_path):
    """Each of four did 100 steps; together 400 at 100 a second."""
    each = {f"each/eval/mean_reward/{i}": 0.0 for i in range(4)}
    run = records.read(written(tmp_path, [row(1) | each]))
    assert times(run)["training"] == 4.0


def test_members_are_known_before_they_are_evaluated(tmp_path):
    """By their lineage."""
    lines = generations(4, 1, {"gamma": np.ones(4)})
    run = records.read(written(tmp_path, [row(1)], lines))
    assert run.members == 4 and times(run)["training"] == 4.0


def test_a_clock_that_says_nothing_is_no_error(tmp_path):
    rows = [{"step": 8, "time/iterations": 1, "time/fps": None}]
    run = records.read(written(tmp_path, rows))
    assert times(run) == dict.fromkeys(times(run), 0.0)
    assert "0%" in said(section(run).parts[0])

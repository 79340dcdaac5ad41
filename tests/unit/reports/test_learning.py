"""Learning curves: intervals over members and of a mean, and the tail."""

import numpy as np
import pytest
from reported import row, written

from ppo_jax.reports import records
from ppo_jax.reports.charts import Band, Threads
from ppo_jax.reports.learning import clock, section

NAMES = ("mean", "std", "median", "q25", "q75", "cvar_5")


def evaluation(value, before=""):
    """Figures of an evaluation, around a value."""
    values = (value, 2.0, value, value - 1, value + 1, value - 3)
    pairs = zip(NAMES, values, strict=True)
    return {f"{before}eval/{name}_reward": x for name, x in pairs}


def charts(path, rows):
    (grid,) = section(records.read(written(path, rows))).parts
    return grid.charts


def test_a_single_run(tmp_path):
    """The mean of an evaluation is known to 1.96 deviations over √episodes."""
    rows = [row(i, rollout__ep_rew_mean=i / 2, eval__episodes=16.0) for i in (1, 2, 4)]
    rows = [r | evaluation(r["time/iterations"]) for r in rows]
    over_steps, over_time, tail = charts(tmp_path, rows)
    training, band, mean = over_steps.marks
    assert isinstance(band, Band) and mean.y.tolist() == [1, 2, 4]
    assert training.y.tolist() == [0.5, 1, 2] and training.x.tolist() == [100, 200, 400]
    np.testing.assert_allclose(band.high - mean.y, 1.96 * 2 / 4)
    np.testing.assert_allclose(mean.y - band.low, 1.96 * 2 / 4)
    assert over_time.x == "seconds" and over_time.marks[0].x.tolist() == [2, 4, 8]
    assert [mark.name for mark in tail.marks][-1] == "mean of the worst 5 % (CVaR)"
    assert tail.marks[0].low.tolist() == [0, 1, 3] and tail.marks[-1].y[0] == -2


def test_a_mean_of_one_episode_has_no_interval(tmp_path):
    rows = [row(i, eval__episodes=1.0, eval__mean_reward=i) for i in (1, 2)]
    rows = [r | {"eval/std_reward": 0.0} for r in rows]
    over_steps, *_ = charts(tmp_path, rows)
    (mean,) = over_steps.marks
    assert mean.y.tolist() == [1, 2]


def test_a_population(tmp_path):
    """Quartiles over members, each of them, and the returns of the fittest."""
    rows = [
        row(i)
        | evaluation(3.0 * i)
        | evaluation(5.0 * i, "best/")
        | {"q25/eval/mean_reward": 2.0 * i, "q75/eval/mean_reward": 4.0 * i}
        | {f"each/eval/mean_reward/{m}": m * i for m in range(6)}
        | {"pbt/fittest": 5.0}
        for i in (1, 2)
    ]
    over_steps, _, tail = charts(tmp_path, rows)
    each, band, median, best = over_steps.marks
    assert isinstance(each, Threads) and len(each.lines) == 6
    assert band.low.tolist() == [2, 4] and band.high.tolist() == [4, 8]
    assert median.y.tolist() == [3, 6] and best.y.tolist() == [5, 10]
    assert tail.marks[0].high.tolist() == [6, 11] and "fittest" in tail.text


def test_a_run_without_an_evaluation_shows_its_training(tmp_path):
    found = charts(tmp_path, [row(1, rollout__ep_rew_mean=1.0)])
    assert [chart.title for chart in found] == ["Return", "Return"]
    assert charts(tmp_path / "none", [row(1)]) == []


@pytest.mark.parametrize(
    ("last", "unit", "expected"),
    [(90.0, "seconds", 90.0), (1800.0, "minutes", 30.0), (9000.0, "hours", 2.5)],
)
def test_time_is_in_a_unit_that_is_read_easily(last, unit, expected):
    name, seconds = clock(np.array([0.0, np.nan, last]))
    assert name == unit and last / seconds == expected

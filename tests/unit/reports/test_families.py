"""A population in pictures, as data."""

import numpy as np
from reported import generations, row, said, written

from ppo_jax.host.metrics.figures import Line
from ppo_jax.host.run_dir import lineage
from ppo_jax.reports import families, records
from ppo_jax.reports.charts import Curve, Threads

RATE, GAMMA = "optimizer.learning_rate", "gamma"


def generation(update, parent, fitness, rates, gammas):
    numbers = {RATE: rates, GAMMA: gammas}
    return {"update": update, "parent": parent, "fitness": fitness, "numbers": numbers}


# Member 2 copied 0 after 4 updates, 0 copied 2 after 8: the best one's past.
FIRST = {RATE: np.array([0.5, 0.01, 0.25]), GAMMA: np.array([0.5, 0.75, 0.5])}
LINES = [
    lineage.beginning(3, FIRST),
    generation(4, [0, 1, 0], [3.0, 2.0, 1.0], [0.5, 0.01, 0.125], [0.5, 0.75, 0.5]),
    generation(8, [2, 1, 2], [9.0, None, 5.0], [0.0625, 0.01, 0.125], [0.5] * 3),
]


def marks(chart):
    """The faint lines of a chart, and points of the strong one."""
    threads, strong = chart.marks
    assert isinstance(threads, Threads) and isinstance(strong, Curve)
    return threads.lines, Line(strong.x.tolist(), strong.y.tolist())


def test_the_family_tree():
    """Lives, copies, and the ancestry of the fittest."""
    faint, strong = marks(families.family_tree(LINES, best=0, end=10))
    assert strong == Line([0, 4, 4, 8, 8, 10], [0, 0, 2, 2, 0, 0])
    lives, copies = faint[:3], faint[3:]
    assert lives == [Line([0, 10], [i, i]) for i in range(3)]
    assert copies == [Line([4, 4], [0, 2]), Line([8, 8], [2, 0])]


def test_schedules_of_numbers():
    """Of every member, and along the ancestry; wide ones are shown by their order."""
    chart = families.schedule(LINES, RATE, best=0, end=10)
    assert chart.log and chart.title == RATE
    faint, strong = marks(chart)
    times = [0, 4, 4, 8, 8, 10]
    assert strong == Line(times, [0.5, 0.5, 0.125, 0.125, 0.0625, 0.0625])
    assert faint[1] == Line(times, [0.01] * 6) and len(faint) == 3
    assert not families.schedule(LINES, GAMMA, best=0, end=10).log


def test_what_is_said_of_a_population(tmp_path):
    """Copies are counted, and numbers told as they were at first and at last."""
    rows = [row(8, pbt__fittest=0.0), row(10)]
    run = records.read(written(tmp_path, rows, LINES))
    intro, charts, table = families.section(run).parts
    assert "3 members, 2 generations, 2 copies" in said(intro)
    assert "member 0, the fittest" in said(intro)
    assert [chart.title for chart in charts.charts] == ["member", RATE, GAMMA]
    assert f"{RATE} 0.0625 0.01 to 0.5 0.01 to 0.125" in said(table)
    assert families.section(records.read(written(tmp_path / "x", rows))) is None


def test_the_fittest_is_a_member_though_the_log_says_otherwise(tmp_path):
    lines = generations(4, 3, {GAMMA: np.full(4, 0.5)})
    rows = [row(30, pbt__fittest=9.0)]
    run = records.read(written(tmp_path, rows, lines))
    assert "the past of member 3" in said(families.section(run).parts[0])

"""Charts as SVG: where points are, gaps, what is said of them."""

import re

import numpy as np
import pytest

from ppo_jax.reports.charts import LARGE, Band, Chart, Curve, Points, Threads
from ppo_jax.reports.drawing import draw

X = np.arange(5.0)
NUMBERS = re.compile(r"[ML](-?[\d.]+),(-?[\d.]+)")


def svg(*marks, **fields):
    figure = draw(Chart("title", marks, **fields), LARGE, 100)
    return figure.find("svg"), figure


def paths(picture, kind):
    found = (path for path in picture.iter("path"))
    return [path.get("d") for path in found if path.get("class").split()[0] == kind]


def test_points_are_in_proportion():
    """Of a straight line, on both axes; up is up."""
    picture, _ = svg(Curve("x", X, 2 * X), log=False)
    (path,) = paths(picture, "line")
    points = np.array(NUMBERS.findall(path), float)
    assert len(points) == 5
    np.testing.assert_allclose(np.diff(points, n=2, axis=0), 0, atol=0.21)
    assert (np.diff(points[:, 0]) > 0).all() and (np.diff(points[:, 1]) < 0).all()


def test_a_gap_is_a_gap_and_a_point_alone_is_a_dot():
    picture, _ = svg(Curve("x", X, np.array([1, np.nan, 2, 3, np.nan])))
    (path,) = paths(picture, "line")
    assert re.fullmatch(r"M[\d.,]+h0M[\d.,]+L[\d.,]+", path)
    (bridge,) = paths(picture, "bridge")
    assert NUMBERS.findall(bridge) == NUMBERS.findall(path) and "M" not in bridge[1:]


@pytest.mark.parametrize("y", [[np.nan] * 5, [np.inf] * 5, []])
def test_nothing_finite_is_said(y):
    picture, _ = svg(Curve("x", X[: len(y)], np.array(y)))
    texts = [text.text for text in picture.iter("text")]
    assert "nothing finite" in texts
    assert "never finite" in picture.find("desc").text


def test_a_picture_is_told_in_words():
    y = np.array([3.0, np.nan, 8.0, -1.0, 2.0])
    picture, _ = svg(Curve("loss", X, y), text="What it is.")
    assert picture.get("role") == "img" and picture.find("title").text == "title"
    assert picture.find("desc").text == (
        "What it is. loss: from 3 to 2, least −1, greatest 8."
    )


def test_what_is_healthy_is_shaded_as_far_as_it_is_in_the_picture():
    """Half of what the axis spans, all of it, nothing."""
    heights = []
    for limits in ((2.0, np.inf), (-np.inf, np.inf), (10.0, np.inf)):
        picture, _ = svg(Curve("x", X, X), healthy=limits, log=False)
        heights.append([float(r.get("height")) for r in picture.iter("rect")])
    (half,), (all_,), nothing = heights
    assert half == pytest.approx(all_ / 2, abs=0.1) and nothing == []


def test_all_kinds_of_marks_are_drawn_with_a_legend():
    picture, figure = svg(
        Threads("many", [(X, X), (X, -X)]),
        Band("between", X, X - 1, X + 1, "two"),
        Curve("line", X, X, "three", dots=True),
        Points("alone", X, X, "four"),
    )
    assert len(paths(picture, "line")) == 2 and len(paths(picture, "dots")) == 2
    (band,) = paths(picture, "band")
    assert band.endswith("Z") and len(NUMBERS.findall(band)) == 10
    legend = [item.text for item in figure.iter("li")]
    assert legend == ["many", "between", "line", "alone"]


def test_many_points_are_few():
    long = np.arange(1e5)
    picture, _ = svg(Curve("x", long, np.sin(long)), Band("y", long, long, long))
    assert (
        sum(len(NUMBERS.findall(path.get("d"))) for path in picture.iter("path")) < 250
    )

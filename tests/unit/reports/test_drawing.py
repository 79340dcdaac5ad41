"""Charts as SVG: where points are, gaps, what is said of them."""

import re

import numpy as np
import pytest

from ppo_jax.reports.charts import LARGE, Band, Chart, Curve, Points, Threads
from ppo_jax.reports.drawing import draw, sparkline
from ppo_jax.reports.elements import markup

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


def test_a_curve_is_where_its_numbers_are():
    """At its ticks; half of a budget is the middle of an axis that shows all of it."""
    x, y = np.array([0.0, 50, 100]), np.array([0.0, 5, 10])
    picture, _ = svg(Curve("x", x, y), across=(0, 200), log=False)
    (path,) = paths(picture, "line")
    (x0, y0), (x1, y1), (x2, y2) = np.array(NUMBERS.findall(path), float)
    ticks = {text.text: float(text.get("x")) for text in picture.iter("text")}
    assert (x0, x1, x2) == (ticks["0"], ticks["50"], ticks["100"])
    line = re.fullmatch(r"M([\d.]+),[\d.]+h([\d.]+)", paths(picture, "grid-line")[0])
    low, wide = line.groups()
    assert x2 == pytest.approx(float(low) + float(wide) / 2, abs=0.1)
    assert y0 > y1 > y2 and y0 - y1 == pytest.approx(y1 - y2, abs=0.2)


def test_the_axes_say_what_there_is():
    """And what they have to show."""
    picture, _ = svg(Curve("x", np.array([0, 2e6]), np.array([-1.0, 1.0])))
    assert {"−1", "0", "1", "1M", "2M"} <= {text.text for text in picture.iter("text")}
    picture, _ = svg(Curve("x", X, X + 90), up=(0.0,), across=(8.0,))
    assert {"0", "50", "8"} <= {text.text for text in picture.iter("text")}


@pytest.mark.parametrize(
    "values",
    [[0.0], [5.0, 5.0], [1e300, -1e300], [1e-300, 2e-300], [1e16, 1e16 + 2], [-3.0]],
)
def test_any_numbers_make_a_picture(values):
    curve = Curve("x", np.arange(float(len(values))), np.array(values))
    spark = sparkline(curve)
    assert (spark is None) == (len(values) < 2)
    for picture, size in ((svg(curve)[0], LARGE), (spark, (120, 28))):
        if picture is None:
            continue
        assert not re.search("nan|inf", markup(picture))
        for path in paths(picture, "line"):
            found = np.array(NUMBERS.findall(path), float)
            assert (found >= 0).all() and (found <= size[:2]).all()


def test_what_is_not_there_is_not_drawn():
    nothing = Curve("x", X[:0], X[:0])
    assert sparkline(nothing) is None
    picture, _ = svg(nothing, Curve("y", X, X))
    assert [bool(path) for path in paths(picture, "line")] == [False, True]


def test_a_name_is_text():
    _, figure = svg(Curve("<b>", X, X), Curve("x", X, X))
    assert "<b>" not in markup(figure) and figure.find("ul")[0].text == "<b>"


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

"""Curves lie where their numbers are, and any numbers make a picture."""

import re
from xml.etree import ElementTree

import pytest

from ppo_jax.monitoring.charts import chart, short, sparkline, ticks


def points(svg):
    """The curves of a picture, in its own units."""
    return [
        [tuple(map(float, pair.split(","))) for pair in line.get("points").split()]
        for line in ElementTree.fromstring(svg).iter("polyline")
    ]


def test_a_curve_is_where_its_numbers_are():
    """Straight and rising, from the axis to the middle: half of the budget is done."""
    (line,) = points(chart({"x": [(0, 0.0), (50, 5.0), (100, 10.0)]}, until=200))
    (x0, y0), (x1, y1), (x2, y2) = line
    assert x0 == 62 and x2 == pytest.approx((62 + 626) / 2, abs=0.1)
    assert x1 - x0 == pytest.approx(x2 - x1, abs=0.2)
    assert y0 > y1 > y2 and y0 - y1 == pytest.approx(y1 - y2, abs=0.2)


def test_the_axes_say_what_there_is():
    svg = chart({"x": [(0, -1.0), (2_000_000, 1.0)]}, None)
    texts = re.findall(r"<text[^>]*>([^<]+)", svg)
    assert {"-1", "0", "1", "1M", "2M"} <= set(texts)


@pytest.mark.parametrize(
    "values",
    [[0.0], [5.0, 5.0], [1e300, -1e300], [1e-300, 2e-300], [1e16, 1e16 + 2], [-3.0]],
)
def test_any_numbers_make_a_picture(values):
    data = list(enumerate(values))
    for svg in filter(None, (chart({"x": data}, None), sparkline(data))):
        assert not re.search("nan|inf", svg)
        for line in points(svg):
            assert all(-1 <= x <= 641 and -1 <= y <= 221 for x, y in line)


def test_what_is_not_there_is_not_drawn():
    assert "nothing yet" in chart({"x": []}, 100)
    assert sparkline([]) == sparkline([(1, 2.0)]) == ""
    assert len(points(chart({"x": [], "y": [(0, 1.0), (1, 2.0)]}, None))) == 1


def test_a_name_is_text():
    svg = chart({"<b>": [(0, 1.0), (1, 2.0)]}, None)
    assert "<b>" not in svg and ElementTree.fromstring(svg).find("title").text == "<b>"


@pytest.mark.parametrize("low", [0.0, -7.3, 1e-9, 123.0])
@pytest.mark.parametrize("width", [1e-6, 0.3, 1.0, 7.0, 1e9])
def test_ticks_are_few_and_inside(low, width):
    found = ticks(low, low + width)
    assert 2 <= len(found) <= 7
    assert low - 1e-6 * width <= found[0] and found[-1] <= low + width * (1 + 1e-6)


def test_numbers_are_short():
    assert [short(x) for x in (0, 999.5, 1000, 2.5e9)] == ["0", "999.5", "1k", "2.5G"]

"""Bars in proportion."""

import math

import pytest
from reported import said

from ppo_jax.reports.strips import Bar, Estimate, forest, strip


def test_bars_are_in_proportion():
    """Of a thousand; a short one is still to be seen."""
    picture = strip("title", "said", [Bar(0.25, 0.75), Bar(0.5, 0.5)])
    places = [(float(r.get("x")), float(r.get("width"))) for r in picture.iter("rect")]
    assert places == [(250, 500), (500, 2)]
    assert picture.find("title").text == "title" and picture.find("desc").text == "said"


def test_estimates_are_on_one_scale():
    """A dot is as far along as its value; one that is unknown has none."""
    found = forest(
        [
            Estimate("half", 0.5, (0.25, 1.0)),
            Estimate("alone", 1.0, None),
            Estimate("broken", -math.inf, None),
        ],
        0.0,
        1.0,
        middle=0.5,
    )
    half, alone, broken = found.iter("svg")
    line, between, point = half.iter("rect")
    middles = [float(r.get("x")) + float(r.get("width")) / 2 for r in (line, point)]
    assert middles == pytest.approx([501, 500], abs=0.2)
    assert float(between.get("width")) == pytest.approx(0.75 * 960)
    assert len([*alone.iter("rect")]) == 2 and len([*broken.iter("rect")]) == 1
    assert "alone 1 alone 1 broken – broken – 0 1" in said(found)

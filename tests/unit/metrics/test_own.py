"""Metrics that parts of an experiment bring along."""

import pytest

from ppo_jax.component import component
from ppo_jax.errors import Misfit
from ppo_jax.host.metrics.catalogue import SECTIONS
from ppo_jax.metrics import SUM, Metric
from ppo_jax.metrics.own import RESERVED, SHARED, named, rows_of

OF_PARTS = ("Policy", "Value", "Risk", "Adversary", "Optimiser")
ANYWAY = ("Rollouts", "Errors and alerts", "Evaluation and time", "Populations")
FIRST = Metric("mine/first", "1", "What is first.")
SECOND = Metric("mine/second", "1", "What is second.", SUM)


@component
class Silent:
    rate: float = 0.5


@component
class Inner(Silent):
    says = (FIRST, SECOND)


@component
class Outer:
    parts: tuple[Silent, ...] = ()
    part: Silent = Silent()
    says = (SECOND,)


def test_rows_of_all_parts_are_found_each_once():
    """At any depth; the outer ones first."""
    assert rows_of(Silent()) == ()
    assert rows_of(Outer()) == (SECOND,)
    assert rows_of(Outer((Silent(), Inner(), Inner()))) == (SECOND, FIRST)
    assert rows_of(Outer(part=Inner())) == (SECOND, FIRST)


@pytest.mark.parametrize(
    "said", [None, FIRST, ("mine/a",), "mine/a", (FIRST._replace(reduction="mean"),)]
)
def test_what_a_part_says_are_rows(said):
    """In a tuple, and whole: a reduction is none by its name."""

    @component
    class Wrong(Silent):
        says = said

    with pytest.raises(Misfit, match=r"^Wrong\.says: expected a tuple of rows such as"):
        rows_of(Outer(part=Wrong()))


def test_parts_name_their_metrics_as_they_like_but_not_as_what_is_measured_anyway():
    own = {row.name: 0.0 for title in OF_PARTS for row in SECTIONS[title]}
    own |= dict.fromkeys(("mine", "steps", "mine/step", "evaluations", *SHARED), 0.0)
    assert named("Mine", own) is own
    for name in [row.name for title in ANYWAY for row in SECTIONS[title]]:
        if name not in SHARED:
            with pytest.raises(Misfit, match=r"Mine: expected metrics with names"):
                named("Mine", {name: 0.0})


def test_sources_of_what_is_measured_anyway_are_nobody_s_either():
    sources = {x for title in ANYWAY for row in SECTIONS[title] for x in row.sources}
    assert sources and all(name.startswith(RESERVED) for name in sources)


@pytest.mark.parametrize("name", ["step", 1, None, ("a", "b"), b"a"])
def test_a_name_is_text_and_no_count_of_steps(name):
    with pytest.raises(Misfit) as error:
        named("Mine.metrics", {"a": 0.0, name: 0.0})
    assert str(error.value).startswith("Mine.metrics: expected metrics with names")
    assert str(error.value).endswith(f", got {name!r}")

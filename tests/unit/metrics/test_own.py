"""Metrics that parts of an experiment bring along."""

from ppo_jax.component import component
from ppo_jax.metrics import SUM, Metric
from ppo_jax.metrics.own import rows_of

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

"""A sink is a component that takes rows."""

import pytest

from ppo_jax import Config, metrics
from ppo_jax.component import component
from ppo_jax.errors import Missing


@component
class Deaf(metrics.Sink):
    """It has forgotten its `write`."""


@component
class Told(metrics.Sink):
    place: str = "here"

    def write(self, step, metrics):
        pass


def test_a_sink_without_a_write_is_refused_before_a_run_begins():
    with pytest.raises(Missing, match=r"Deaf.write: missing; every Sink needs one"):
        Deaf()


@pytest.mark.parametrize("sinks", [(Told,), (3,), "here", Told()])
def test_what_is_no_sink_is_refused(sinks):
    with pytest.raises(
        TypeError, match=r"Config.sinks: expected tuple\[.*Sink, \.\.\.]"
    ):
        Config("CartPole-v1", sinks=sinks)


def test_sinks_are_nothing_to_a_program():
    """They cause no compilation, and a list of them is taken."""
    from ppo_jax.component import program

    with_sinks = Config("CartPole-v1", sinks=[Told("there")])
    assert with_sinks.sinks == (Told("there"),)
    assert program(with_sinks).sinks == ()

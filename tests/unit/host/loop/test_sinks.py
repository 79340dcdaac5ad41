"""Whatever a sink does, it costs a run nothing but that sink."""

from types import SimpleNamespace

import pytest

from ppo_jax import Config, metrics
from ppo_jax.component import component
from ppo_jax.host.loop.sinks import Sinks

HEARD, MORE = [], []


@component
class Told(metrics.Sink):
    """Remembers what it hears."""

    def begin(self, run):
        self.hear("begin", run)

    def write(self, step, metrics):
        self.hear("write", step, dict(metrics))
        metrics.clear()  # It has them for itself.

    def end(self):
        self.hear("end")

    def hear(self, what, *more):
        HEARD.append((what, type(self).__name__))
        MORE.extend(more)


@component
class Failing(Told):
    """Fails where one says."""

    at: str = "write"

    def hear(self, what, *more):
        super().hear(what, *more)
        if self.at == what:
            raise ConnectionError(f"no way\nin {what}")


class Lines:
    """A console."""

    def __init__(self):
        self.said = []

    def say(self, text):
        self.said.append(text)


def tell(*sinks, last=None, rows=({"step": 10, "x": 1.0, "y": None}, {"step": 20})):
    """What was heard by whom, and what was said."""
    HEARD.clear()
    MORE.clear()
    console = Lines()
    config = Config("CartPole-v1", sinks=sinks, gamma=0.5)
    record = SimpleNamespace(name="mine", rows=SimpleNamespace(last=last or {}))
    told = Sinks(config, record, "f00d", 5, console)
    for row in rows:
        told.write(row)
    told.close()
    return [*HEARD], console.said


def test_a_sink_hears_of_the_run_its_rows_and_its_end():
    """Finite numbers, and fields as text."""
    heard, _ = tell(Told())
    assert [what for what, _ in heard] == ["begin", "write", "write", "end"]
    run, *rows = MORE
    assert (run.name, run.id, run.step) == ("mine", "f00d", 5)
    assert run.config["gamma"] == "0.5"
    assert rows == [10, {"x": 1.0}, 20, {}]


@pytest.mark.parametrize(("step", "told"), [(5, [5, {"x": 2.0}]), (4, [])])
def test_the_row_with_which_a_run_was_saved_is_told_again(step, told):
    """Not one before, whose checkpoint was a later one than its log."""
    tell(Told(), last={"step": step, "x": 2.0, "y": None}, rows=[])
    assert MORE[1:] == told


def test_what_one_sink_does_to_a_row_is_nothing_to_another():
    tell(Told(), Told())
    assert MORE.count({"x": 1.0}) == 2


@pytest.mark.parametrize(
    ("at", "heard"),
    [
        ("begin", ["begin"]),
        ("write", ["begin", "write"]),
        ("end", ["begin", "write", "write", "end"]),
    ],
)
def test_one_that_raises_is_named_once_and_left_out(at, heard):
    """The others go on."""
    found, said = tell(Failing(at=at), Told())
    assert [x for x, by in found if by == "Failing"] == heard
    assert [x for x, by in found if by == "Told"] == ["begin", "write", "write", "end"]
    assert said == [
        "warning: the sink Failing is left out from here: ConnectionError: no way"
    ]


@component
class Leaving(Told):
    """Ends the process."""

    def hear(self, what, *more):
        raise SystemExit("no licence")


def test_one_that_would_end_the_process_is_left_out():
    found, said = tell(Leaving(), Told())
    assert len(found) == 4
    assert said == [
        "warning: the sink Leaving is left out from here: SystemExit: no licence"
    ]


def test_without_sinks_nothing_is_told():
    assert tell() == ([], [])

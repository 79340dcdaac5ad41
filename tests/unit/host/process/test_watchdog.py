"""The watchdog speaks, ends, and leaves a healthy run alone."""

import threading
import time

import pytest

from ppo_jax.host.process.watchdog import Watchdog

TICK = 0.01


class Listener:
    """Stands in for the console; the process survives its end."""

    def __init__(self):
        self.said = []
        self.status = None
        self.left = threading.Event()

    def say(self, text):
        self.said.append(text)

    def leave(self, status):
        self.status = status
        self.left.set()


@pytest.fixture
def listener():
    return Listener()


def test_it_speaks_once_and_ends_the_process(listener):
    with Watchdog(1, listener, hint="go on so", tick=0.25):
        assert listener.left.wait(60)
    assert listener.status == 4
    first, last = listener.said
    assert "nothing has come back for 1 s; the run ends after 4 s" in first
    assert last.endswith("giving up; go on so")


def test_what_comes_back_keeps_it_silent(listener):
    with Watchdog(1, listener, hint="", tick=TICK) as dog:
        for _ in range(40):
            time.sleep(0.05)
            dog.heard()
    assert listener.said == [] and listener.status is None


def test_what_takes_as_long_as_it_likes_is_not_watched(listener):
    """Before and after it, what does not come back is; what did is a sign of life."""
    with Watchdog(1, listener, hint="", tick=TICK) as dog:
        dog._silence = 0.5
        with dog.asleep():
            assert dog._silence < 0.1 and dog._longest >= 0.5
            time.sleep(0.1)
            dog._silence = 100.0
            time.sleep(0.2)
            assert listener.said == [] and not listener.left.is_set()
        assert listener.left.wait(60)
    assert listener.status == 4


def test_patience_grows_with_what_took_long(listener):
    with Watchdog(1, listener, hint="", tick=TICK) as dog:
        dog._silence = 100.0
        dog.heard()
        dog._silence = 200.0
        time.sleep(0.2)
        assert listener.said == []
        dog._silence = 301.0
        time.sleep(0.5)
    assert "the run ends after 20 min" in listener.said[0]
    assert listener.status is None


def test_a_suspended_run_has_not_stalled(listener, monkeypatch):
    """Hours on the clock while nothing ran are one tick."""
    with Watchdog(1, listener, hint="", tick=TICK):
        monkeypatch.setattr(time, "monotonic", lambda: 1e9)
        monkeypatch.setattr(time, "time", lambda: 1e9)
        time.sleep(0.1)
        monkeypatch.undo()
    assert listener.said == []

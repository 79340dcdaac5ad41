"""The first signal asks, the second ends, and nothing is left behind."""

import os
import signal
import time
from types import SimpleNamespace
from unittest.mock import Mock

import pytest

from ppo_jax.host.process import console
from ppo_jax.host.process.console import TOGETHER, Calls
from ppo_jax.host.process.exits import Exit
from ppo_jax.host.process.interrupt import SIGNALS, Interrupt


def send(number):
    os.kill(os.getpid(), number)


def until(happened):
    deadline = time.monotonic() + 5
    while not happened():
        assert time.monotonic() < deadline
        time.sleep(0.001)


@pytest.mark.parametrize("number", SIGNALS)
def test_one_signal_asks_and_another_ends(number):
    """Ctrl-C and SIGTERM alike; a listener answers, whatever the main thread does."""
    answers = Mock()
    with Interrupt(answers) as interrupt:
        assert not interrupt.asked
        send(number)
        until(lambda: answers.say.called)
        assert interrupt.asked and not answers.leave.called
        answers.say.assert_called_once_with(
            "stopping after this phase; once more to stop at once"
        )
        time.sleep(TOGETHER)
        send(SIGNALS[0])
        until(lambda: answers.leave.called)
        answers.leave.assert_called_once_with(Exit.INTERRUPTED)


def test_a_signal_that_comes_twice_is_one(monkeypatch):
    """As from a terminal and a launcher, or a key held down, however long it is."""
    now = SimpleNamespace(seconds=9.0)
    monkeypatch.setattr(console.time, "monotonic", lambda: now.seconds)
    calls, heard = Calls(), []
    for now.seconds in (9.0, 9.1, 9.2, 9.3, 9.5, 9.7, 10.0, 10.1, 10.4):
        heard += [now.seconds] * calls.another()
    assert heard == [9.0, 10.0, 10.4]


def test_signals_of_a_moment_ask_and_do_not_end():
    answers = Mock()
    with Interrupt(answers) as interrupt:
        send(signal.SIGINT)
        send(signal.SIGTERM)
        until(lambda: answers.say.called)
    assert interrupt.asked and not answers.leave.called


def test_a_run_of_nohup_outlives_its_terminal():
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        with Interrupt(Mock()) as interrupt:
            send(signal.SIGHUP)
            assert signal.getsignal(signal.SIGHUP) == signal.SIG_IGN
        assert not interrupt.asked
    finally:
        signal.signal(signal.SIGHUP, before)


def test_other_signals_are_not_meant():
    answers, heard = Mock(), Mock()
    before = signal.signal(signal.SIGUSR1, heard)
    try:
        with Interrupt(answers) as interrupt:
            send(signal.SIGUSR1)
            until(lambda: heard.called)
            send(signal.SIGTERM)
            until(lambda: answers.say.called)
            assert interrupt.asked and not answers.leave.called
    finally:
        signal.signal(signal.SIGUSR1, before)


def test_afterwards_all_is_as_before():
    """Also after an error."""
    before = [signal.getsignal(number) for number in SIGNALS]
    wakeup = signal.set_wakeup_fd(-1)
    with pytest.raises(ZeroDivisionError), Interrupt(Mock()):
        assert [signal.getsignal(number) for number in SIGNALS] != before
        1 / 0  # noqa: B018
    assert [signal.getsignal(number) for number in SIGNALS] == before
    assert signal.set_wakeup_fd(wakeup) == -1

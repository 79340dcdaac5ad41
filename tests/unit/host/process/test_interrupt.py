"""The first signal asks, the second ends, and nothing is left behind."""

import os
import signal
import time
from unittest.mock import Mock

import pytest

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
    console = Mock()
    with Interrupt(console) as interrupt:
        assert not interrupt.asked
        send(number)
        until(lambda: console.say.called)
        assert interrupt.asked and not console.leave.called
        console.say.assert_called_once_with(
            "stopping after this phase; once more to stop at once"
        )
        send(SIGNALS[0])
        until(lambda: console.leave.called)
        console.leave.assert_called_once_with(Exit.INTERRUPTED)


def test_other_signals_are_not_meant():
    console, heard = Mock(), Mock()
    before = signal.signal(signal.SIGUSR1, heard)
    try:
        with Interrupt(console) as interrupt:
            send(signal.SIGUSR1)
            until(lambda: heard.called)
            send(signal.SIGTERM)
            until(lambda: console.say.called)
            assert interrupt.asked and not console.leave.called
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

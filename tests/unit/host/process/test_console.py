"""What a run shows, line by line."""

import contextlib
import errno
import sys
from types import SimpleNamespace
from unittest import mock

import pytest

from ppo_jax.host.process import console
from ppo_jax.host.process.console import QUIET, VERBOSE, Console, Guest

METRICS = {"time/compiling": 2.0, "time/fps": 1000.0, "rollout/ep_rew_mean": 1.5}
SECONDS = (0.1, 1, 4.9, 5.2, 6, 10.1, 10.3, 31, 32)


@pytest.mark.parametrize(
    ("verbosity", "steps"),
    [(console.NORMAL, [1, 4, 7, 8]), (VERBOSE, [*range(1, 10)]), (QUIET, [])],
)
def test_lines_keep_their_distance(verbosity, steps, monkeypatch, capsys):
    """A line at once, and then one after 5 s or more."""
    clock = iter(SECONDS)
    monkeypatch.setattr(console.time, "monotonic", lambda: next(clock))
    shown = Console(verbosity)
    shown.start(total=9, done=0)
    for step in range(1, 10):
        shown.update(step, METRICS)
    shown.say("a warning")
    shown.close()
    *lines, last = capsys.readouterr().out.splitlines()
    assert last == "a warning"
    assert [int(line.split()[0]) for line in lines if "of 9 steps" in line] == steps


def test_what_is_not_known_yet_is_not_shown(capsys):
    """Evaluations stay until the next; NaN is no return."""
    nan = float("nan")
    shown = Console(VERBOSE)
    shown.start(total=10_000, done=0)
    shown.update(1, METRICS | {"rollout/ep_rew_mean": nan})
    shown.update(2, METRICS | {"eval/mean_reward": -12345.6})
    evaluated = {"eval/mean_reward": 0.01234, "best/eval/mean_reward": 7.0}
    shown.update(3000, METRICS | evaluated)
    shown.update(4, METRICS | {"rollout/ep_rew_mean": nan})
    shown.close()
    assert capsys.readouterr().out.splitlines() == [
        "compiled in 2 s",
        "           1 of 10,000 steps  1,000 steps/s",
        "           2 of 10,000 steps  1,000 steps/s  return 1.5  evaluation -12,346",
        "       3,000 of 10,000 steps  1,000 steps/s  return 1.5  evaluation 0.01234"
        "  best 7",
        "           4 of 10,000 steps  1,000 steps/s  return 1.5  evaluation 0.01234"
        "  best 7",
    ]


@pytest.mark.parametrize("kind", [Console, Guest])
@pytest.mark.parametrize(
    "error",
    [
        OSError(errno.ENOSPC, "No space left on device"),
        OSError(errno.EIO, "Input/output error"),
        UnicodeEncodeError("ascii", "→", 0, 1, "ordinal not in range"),
        ValueError("I/O operation on closed file"),
    ],
)
def test_what_cannot_be_shown_ends_no_run(kind, error, monkeypatch):
    """It is not tried again. Only of its own process does a run silence the rest."""
    place, hushed = mock.Mock(), mock.Mock()
    place.write.side_effect = error
    monkeypatch.setattr(sys, "stdout", place)
    monkeypatch.setattr(console, "hush", hushed)
    shown = kind(VERBOSE)
    shown.start(total=9, done=0)
    shown.update(1, METRICS)
    shown.say("→")
    shown.close()
    assert place.write.call_count == 1
    assert hushed.called == (kind is Console and isinstance(error, OSError))


def test_a_process_ends_whatever_cannot_be_shown(monkeypatch):
    ends = mock.Mock()
    monkeypatch.setattr(console.os, "_exit", ends)
    shown = Console()
    monkeypatch.setattr(shown, "close", mock.Mock(side_effect=OSError))
    with contextlib.suppress(OSError):
        shown.leave(4)
    ends.assert_called_once_with(4)


@pytest.mark.parametrize(
    ("terminal", "jupyter", "widgets", "live"),
    [
        (True, False, False, True),
        (False, True, True, True),
        (False, True, False, False),
        (False, False, True, False),
    ],
)
def test_a_bar_moves_in_a_terminal_or_a_notebook_with_widgets(
    terminal, jupyter, widgets, live, monkeypatch
):
    """Elsewhere there are lines instead, and nothing complains of what is missing."""
    place = SimpleNamespace(is_terminal=terminal, is_jupyter=jupyter)
    found = {"ipywidgets": object()} if widgets else {}
    monkeypatch.setattr(console.importlib.util, "find_spec", found.get)
    assert bool(console._is_live(place)) == live

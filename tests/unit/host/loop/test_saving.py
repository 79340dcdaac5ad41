"""When a run is saved, and with what beside it."""

import math
from types import SimpleNamespace

import jax.numpy as jnp
import pytest

from ppo_jax import Config
from ppo_jax.host.loop import saving
from ppo_jax.host.loop.saving import Saves

MEMBERS = SimpleNamespace(fitness=jnp.array([2.0, 3.0]))


class Kept:
    """What was saved of a run."""

    family = SimpleNamespace(packed="generations")

    def __init__(self):
        self.saved = []

    def save(self, update, population, fitness, meta):
        self.saved.append((update, fitness, meta))


@pytest.fixture
def clock(monkeypatch):
    """A clock that is set by hand."""
    now = SimpleNamespace(seconds=50.0)
    monkeypatch.setattr(saving.time, "monotonic", lambda: now.seconds)
    return now


@pytest.fixture
def saves(clock):
    alarms = SimpleNamespace(streaks={"skipped_steps": [3]})
    return Saves(Config("CartPole-v1"), Kept(), alarms, "f00d")


def saved(saves):
    return [(update, fitness) for update, fitness, _ in saves._record.saved]


def test_a_run_is_saved_with_evaluations_and_at_its_end(saves):
    """It is known how fit it is only after an evaluation."""
    for update, evaluated, ending in ((1, False, ""), (2, True, ""), (3, False, "x")):
        saves.after(update, MEMBERS, evaluated, ending)
    assert saved(saves) == [(2, 3.0), (3, -math.inf)]
    _, _, meta = saves._record.saved[0]
    assert meta.pop("config")["gamma"]["value"] == "0.99"
    streaks = {"skipped_steps": [3]}
    assert meta == {"id": "f00d", "lineage": "generations", "streaks": streaks}


def test_a_run_is_saved_every_ten_minutes(saves, clock):
    """Of the last time, whatever that was for."""
    for update, seconds in enumerate((649.0, 651.0, 1250.0, 1252.0), start=1):
        clock.seconds = seconds
        saves.after(update, MEMBERS, False, "")
    clock.seconds = 1800.0
    saves.after(5, MEMBERS, True, "")
    clock.seconds = 2399.0
    saves.after(6, MEMBERS, False, "")
    assert saved(saves) == [(2, -math.inf), (4, -math.inf), (5, 3.0)]

"""How a batch of a walk-forward is trained, and what it came to, from its file."""

import dataclasses

import numpy as np
import pytest
from traders import PAIRS, planned, tiny

from ppo_jax.backtests import walking
from ppo_jax.host.loop.phases import Rhythm
from ppo_jax.host.process.console import Guest
from ppo_jax.sweeps import cohorts


def test_generations_end_phases_of_agents_that_know_of_no_population(
    tmp_path, monkeypatch
):
    """A phase of two updates, and one of what is left of three."""
    found = []

    def train(config, *_, steer, **__):
        found.append((config, steer.interval))
        raise KeyboardInterrupt

    monkeypatch.setattr(cohorts.training, "train", train)
    plan = planned(tiny(pbt=dataclasses.replace(PAIRS, interval=3)), folds=1)
    with pytest.raises(KeyboardInterrupt):
        list(walking.walk(plan, [2], tmp_path, "", Guest))
    [(config, interval)] = found
    rhythm = Rhythm.of(config, interval)
    assert config.pbt is None
    assert [rhythm.end(done) for done in (0, 2, 3, 5)] == [2, 3, 5, 6]


def test_a_batch_of_a_version_before_is_read(tmp_path):
    """It did not say whose training failed; each member is there once."""
    place = np.array([[0, 0, 0], [0, 1, 0], [0, 1, 0]])
    others = dict.fromkeys(walking.Tracks._fields, np.arange(3.0))
    del others["failed"]
    np.savez(tmp_path / walking.KEPT, **others | {"place": place})
    found = walking.kept(tmp_path)
    assert found.place.tolist() == [[0, 0, 0], [0, 1, 0]]
    assert found.growth.tolist() == [0, 1]
    assert found.failed.tolist() == [False, False]


def test_tracks_that_are_damaged_are_none(tmp_path):
    """Cut, empty, garbage or other arrays: the batch is not finished."""
    path, place = tmp_path / walking.KEPT, np.array([[0, 0, 0]])
    assert walking.kept(tmp_path) is None
    whole = dict.fromkeys(walking.Tracks._fields, np.arange(1.0)) | {"place": place}
    np.savez(path, **whole)
    assert walking.kept(tmp_path).growth.tolist() == [0]
    data = path.read_bytes()
    flipped = data[:70] + bytes([data[70] ^ 1]) + data[71:]
    cut = [data[:end] for end in range(0, len(data), 97)]
    for damaged in (*cut, flipped, bytes(range(200)), b"[1]\n"):
        path.write_bytes(damaged)
        assert walking.kept(tmp_path) is None
    np.savez(path, growth=np.arange(1.0))
    assert walking.kept(tmp_path) is None

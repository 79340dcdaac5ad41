"""Runs are watched as they come, grow and go."""

import os
import shutil

import pytest
from shelf import log, row, run

from ppo_jax.errors import UserError
from ppo_jax.host.run_dir.presence import alone
from ppo_jax.monitoring import watch as watches
from ppo_jax.monitoring.watch import Watch


@pytest.fixture(autouse=True)
def at_once(monkeypatch):
    """Nothing that was seen is still true."""
    monkeypatch.setattr(watches, "SECONDS", 0.0)
    monkeypatch.setattr(watches, "SEARCHES", 0)


def steps(watch):
    with watch.seen() as runs:
        return {name: seen.status.step for name, seen in runs.items()}


def test_runs_come_grow_and_go(tmp_path):
    watch = Watch(tmp_path)
    assert steps(watch) == {}
    run(tmp_path / "a", [row(10)])
    run(tmp_path / "b" / "c", [row(20)])
    assert steps(watch) == {"a": 10, "b/c": 20}
    log(tmp_path / "a", [row(30)])
    assert steps(watch)["a"] == 30
    shutil.rmtree(tmp_path / "b")
    assert steps(watch) == {"a": 30}
    shutil.rmtree(tmp_path)
    assert steps(watch) == {}
    run(tmp_path / "a", [row(1)])
    assert steps(watch) == {"a": 1}


def test_what_is_under_way_is_first_then_what_was_heard_of_last(tmp_path):
    for age, name in enumerate("abc"):
        path = run(tmp_path / name, [row(10)]) / "metrics.jsonl"
        os.utime(path, (1e9 - age, 1e9 - age))
    with alone(tmp_path / "b"):
        assert [*steps(Watch(tmp_path))] == ["b", "a", "c"]


def test_a_run_may_be_the_folder_itself(tmp_path):
    run(tmp_path / "x", [row(10)])
    assert steps(Watch(tmp_path / "x")) == {"": 10}


def test_a_folder_that_is_none_is_said(tmp_path):
    with pytest.raises(UserError, match="nowhere: no run to be found there"):
        Watch(tmp_path / "nowhere")


def test_what_was_just_seen_is_not_looked_for_again(tmp_path, monkeypatch):
    """However many ask."""
    watch = Watch(tmp_path)
    monkeypatch.setattr(watches, "SECONDS", 60.0)
    steps(watch)
    run(tmp_path / "a", [row(10)])
    assert steps(watch) == {}

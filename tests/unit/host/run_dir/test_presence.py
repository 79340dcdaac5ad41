"""One process at a time is at work in a run directory, and only while it is alive."""

import os
import signal
import subprocess
import sys
import threading
import time

import pytest
from runs import called

from ppo_jax.host.run_dir import experiment, presence
from ppo_jax.host.run_dir.presence import alone, is_alive
from ppo_jax.host.run_dir.script import ExperimentError

HOLDING = """
import os, subprocess, sys, time
from pathlib import Path
from ppo_jax.host.run_dir.presence import alone

with alone(Path(sys.argv[1])):
    if not os.fork():  # As environments do that play in processes of their own.
        print(f"child {os.getpid()}", flush=True)
        time.sleep(60)
    time.sleep(60)
"""


def test_a_second_one_is_refused_and_told_who_is_there(tmp_path):
    with alone(tmp_path / "run"):
        assert is_alive(tmp_path / "run")
        with pytest.raises(ExperimentError) as refused, alone(tmp_path / "run"):
            pytest.fail("two at once")
    said = str(refused.value)
    assert said.startswith(f"{tmp_path / 'run'}: a run is under way there, by process ")
    assert f" {os.getpid()} on " in said and "another directory" in said
    with alone(tmp_path / "run"):
        pass


def test_a_killed_process_is_not_alive_though_its_children_are(tmp_path):
    """Nothing that has crashed looks alive."""
    words = [sys.executable, "-c", HOLDING, str(tmp_path)]
    process = subprocess.Popen(words, stdout=subprocess.PIPE, text=True)
    child = int(process.stdout.readline().split()[1])
    try:
        assert is_alive(tmp_path)
        process.kill()
        process.wait()
        os.kill(child, 0)
        assert not is_alive(tmp_path)
        with alone(tmp_path):
            pass
    finally:
        os.kill(child, signal.SIGKILL)
        process.stdout.close()


def test_those_who_look_keep_nobody_from_beginning(tmp_path):
    """A look holds the lock for a moment."""
    stop = threading.Event()
    (tmp_path / presence.LOCK).touch()

    def look():
        while not stop.is_set():
            is_alive(tmp_path)

    lookers = [threading.Thread(target=look) for _ in range(3)]
    for each in lookers:
        each.start()
    try:
        for _ in range(20):
            with alone(tmp_path):
                pass
    finally:
        stop.set()
        for each in lookers:
            each.join()


def test_a_look_leaves_nothing_behind_and_waits_for_nothing(tmp_path):
    assert not is_alive(tmp_path) and not is_alive(tmp_path / "nowhere")
    assert not [*tmp_path.iterdir()]
    os.mkfifo(tmp_path / presence.LOCK)
    began = time.monotonic()
    assert not is_alive(tmp_path) and time.monotonic() - began < 1


def test_a_place_that_cannot_be_written_is_said(tmp_path):
    (tmp_path / "file").touch()
    refused = pytest.raises(ExperimentError, match="no run can be kept there")
    with refused, alone(tmp_path / "file"):
        pytest.fail("a run in a file")


@pytest.mark.parametrize(
    "name", ["lr=[0.1]", "a\\b", "a?b", "a*b", "old [1]/run", "\udcff"]
)
def test_a_place_where_checkpoints_would_be_lost_is_refused(tmp_path, name):
    """Before anything is made there; what is no training may be kept there."""
    said = "its path has '.', with which checkpoints may not be found again; choose"
    with pytest.raises(ExperimentError, match=said), alone(tmp_path / name):
        pytest.fail("a run that nobody can load")
    assert not [*tmp_path.iterdir()]
    with presence.held(tmp_path / name):
        pass


def test_the_current_folder_is_a_part_of_the_place(tmp_path, monkeypatch):
    (tmp_path / "a[1]").mkdir()
    monkeypatch.chdir(tmp_path / "a[1]")
    path = tmp_path / "mine.py"
    path.write_text("from ppo_jax import Config\nconfig = Config('CartPole-v1')\n")
    for options in ([], ["--run-dir", "run"]):
        done = called("train", path, *options)
        assert done.returncode == 2 and "has '[', with which" in done.stderr
    assert not [*(tmp_path / "a[1]").iterdir()]


@pytest.mark.parametrize("text", [b"1234\n", b"worker 3", b"\xff\x00"])
def test_a_lock_of_something_else_stays_as_it_is(tmp_path, text):
    (tmp_path / presence.LOCK).write_bytes(text)
    refused = pytest.raises(ExperimentError, match=r"holds \.lock, which a run would")
    with refused, alone(tmp_path):
        pytest.fail("replaced")
    assert (tmp_path / presence.LOCK).read_bytes() == text


@pytest.mark.parametrize("name", ["run", "run/batches/001"])
def test_a_lock_that_is_damaged_is_taken_over_by_its_run(tmp_path, name):
    """As a power cut may leave it."""
    place = tmp_path / name
    place.mkdir(parents=True)
    (tmp_path / "run" / experiment.OVERRIDES).write_text("[]")
    for text in (b"12", b"1234\n", b"\0" * 20, b"\xff\x00"):
        (place / presence.LOCK).write_bytes(text)
        with alone(place):
            assert is_alive(place)
        assert (place / presence.LOCK).read_text().startswith(f"{os.getpid()} ")


def test_without_locks_a_run_goes_without(tmp_path, monkeypatch):
    """On a file system that knows none."""

    def refuse(*_):
        raise OSError(presence.errno.ENOLCK, "No locks available")

    monkeypatch.setattr(presence.fcntl, "flock", refuse)
    with alone(tmp_path):
        assert not is_alive(tmp_path)


def test_a_system_that_knows_no_locks_is_told_which_do(tmp_path, monkeypatch):
    """Before anything is made there."""
    monkeypatch.setattr(presence, "fcntl", None)
    path = tmp_path / "mine.py"
    path.write_text("from ppo_jax import Config\nconfig = Config('CartPole-v1')\n")
    done = called("train", path, "--run-dir", tmp_path / "run")
    said = "error: runs need Linux or macOS; on Windows, a Linux within it (WSL)\n"
    assert (done.returncode, done.stderr) == (2, said)
    assert not (tmp_path / "run").exists()
    (tmp_path / presence.LOCK).touch()
    assert not is_alive(tmp_path)

"""Populations over devices and processes: the same results, and a clear end.

Every process has a limit, so that nothing can hang.
"""

import json
import re
import signal
import socket
import subprocess
import time

import chex
import pytest
import zygote
from on_devices import LAYOUTS
from runs import (
    ENVIRONMENT,
    EXPERIMENT,
    arguments,
    assert_same,
    called,
    command,
    leaves,
    on_sixteen_cores,
    rows,
    saved,
    wait_for_checkpoint,
)

LIMIT = 120
GLOO = re.compile(r"\[Gloo\]|peer ranks")
"""What its threads say piece by piece, between one another's words."""
POPULATION = (
    EXPERIMENT.format(memory="")
    + """
import dataclasses
from ppo_jax import PBT, LogUniform, optimizers, schedules, terms
from ppo_jax.envs.probes import Target

config = dataclasses.replace(
    config,
    env=Target(),
    num_epochs=1,
    terms=(terms.Surrogate(), terms.Value()),
    optimizer=optimizers.Adam(schedule=schedules.Constant()),
    total_timesteps=32 * 10,
    pbt=PBT({"optimizer.learning_rate": LogUniform(1e-4, 1e-2)}, size=8, interval=4),
)
"""
)
LONG = ("--total-timesteps", 32 * 100_000)


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    path = tmp_path_factory.mktemp("mesh") / "experiment.py"
    path.write_text(POPULATION)
    return path


@pytest.fixture(scope="module")
def alone(path):
    """A run of one process with one device."""
    run_dir = path.parent / "alone"
    done = called("train", path, "--run-dir", run_dir)
    assert done.returncode == 0, done.stderr
    return run_dir


@pytest.fixture(scope="module")
def shared(path):
    """The same run in two processes with two devices each, and what they printed."""
    run_dir = path.parent / "shared"
    return run_dir, succeed(path, run_dir)


def on(devices):
    return ENVIRONMENT | {"JAX_NUM_CPU_DEVICES": str(devices)}


def train(path, run_dir, devices, *options):
    line = ("train", path, "--run-dir", run_dir, *options)
    done = command(*line, timeout=LIMIT, environment=on(devices))
    assert done.returncode == 0, done.stderr
    return done.stdout


def job(path, run_dir, *options):
    """The lines of two processes of one job."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    place = ("--coordinator", f"127.0.0.1:{port}", "--num-processes", 2, "--process-id")
    line = ("train", path, "--run-dir", run_dir, *options)
    return [arguments(*line, *place, number) for number in range(2)]


def both(*line):
    """The ends of two processes with two devices each."""
    lines = [words[1:] for words in job(*line)]
    return [ended(x) for x in zygote.run_all(lines, on(2), timeout=LIMIT)]


def begin_two(*line):
    """Starts two processes with two devices each."""
    return [
        subprocess.Popen(
            words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=on(2)
        )
        for words in job(*line)
    ]


def outcome(process):
    """The end of a process that was started."""
    try:
        said = process.communicate(timeout=LIMIT)
    except subprocess.TimeoutExpired:
        process.kill()
        raise
    status = process.returncode
    return ended(subprocess.CompletedProcess(process.args, status, *said))


def ended(done):
    """Exit status, and what was said by us on both streams."""
    streams = [
        [line for line in text.splitlines() if not GLOO.search(line)]
        for text in (done.stdout, done.stderr)
    ]
    return done.returncode, *("\n".join(lines) for lines in streams)


def succeed(*line):
    """What two processes say that train to the end."""
    outcomes = both(*line)
    for status, _, errors in outcomes:
        assert status == 0, errors
    return [said for _, said, _ in outcomes]


def assert_close(expected, found):
    """Two runs did the same updates with the same results, to rounding."""
    (update, theirs), (also, ours) = leaves(expected), leaves(found)
    assert update == also
    chex.assert_trees_all_close(theirs, ours, rtol=1e-7, atol=1e-5)
    for a, b in zip(rows(expected), rows(found), strict=True):
        assert a.keys() == b.keys() and a["step"] == b["step"]
        assert a["train/value_loss"] == pytest.approx(b["train/value_loss"], abs=1e-4)
    theirs, ours = lineage(expected), lineage(found)
    assert [line["parent"] for line in theirs] == [line["parent"] for line in ours]


def lineage(run_dir):
    lines = (run_dir / "lineage.jsonl").read_text().splitlines()
    return [json.loads(line) for line in lines]


@pytest.fixture(scope="module")
def lives(tmp_path_factory):
    """What ten updates ended in on each layout, and what was said of it."""
    ended, said = on_sixteen_cores("on_devices", tmp_path_factory.mktemp("lives"))
    by_layout = {
        name: [x for place, x in ended.items() if place.startswith(name)]
        for name in LAYOUTS
    }
    return by_layout, said


def test_results_do_not_depend_on_the_layout(lives):
    """Ten updates and two generations; bit-identical on the same one.

    Minibatches of two steps have no shares for four devices.
    """
    ended, said = lives
    for name in LAYOUTS:
        chex.assert_trees_all_close(ended["alone"], ended[name], rtol=1e-7, atol=1e-5)
        assert said[name]["same again"]


def test_only_a_generation_communicates(lives):
    """Also with an early stop, which is a loop as long as its longest member's."""
    _, said = lives
    assert said["apart"]["advance"] == []
    assert "all-gather" in said["apart"]["evolve"]
    assert "all-gather" in said["shared"]["advance"]  # Of shares of environments.


def test_other_numbers_compile_nothing_on_any_layout(lives):
    """Neither does a second population."""
    _, said = lives
    for name in LAYOUTS:
        counts = {count for life in said[name]["compiled"] for count in life}
        assert len(counts) == 1


def test_two_processes_train_as_one(alone, shared):
    """Two devices in each; one of them talks and writes."""
    run_dir, (said, other) = shared
    assert_close(alone, run_dir)
    assert "4 devices of 2 processes" in said and "finished" in said
    assert other == ""
    assert len(list(run_dir.glob("events.out.tfevents.*"))) == 1


@pytest.mark.slow
def test_two_processes_share_the_environments_of_a_member(path, alone):
    """All four devices work on one member after the other."""
    run_dir = path.parent / "together"
    said, _ = succeed(path, run_dir, "--devices-per-member", 4)
    assert "4 devices of 2 processes" in said
    assert_close(alone, run_dir)


@pytest.mark.slow
def test_a_job_goes_on_with_other_devices_and_processes(path, alone, shared, tmp_path):
    """From two processes to one with three devices, and from one to two."""
    run_dir, _ = shared
    more = ("--total-timesteps", 32 * 12, "--gamma", "0.95")
    train(path, alone, 1, "--resume", *more)
    said = train(path, run_dir, 3, "--resume", *more)
    assert "cpu (cpu), 2 devices" in said and "gamma: 0.99 -> 0.95" in said
    assert_close(alone, run_dir)
    more = ("--total-timesteps", 32 * 14, "--gamma", "0.9")
    train(path, alone, 1, "--resume", *more)
    said, _ = succeed(path, run_dir, "--resume", *more)
    assert "resuming after update 12 of 14" in said
    assert_close(alone, run_dir)


@pytest.mark.slow
@pytest.mark.parametrize("killed", [0, 1])
def test_a_killed_process_ends_the_job(path, tmp_path, killed):
    """Within a minute, with a message; the run goes on from its checkpoint."""
    run_dir = tmp_path / "run"
    processes = begin_two(path, run_dir, *LONG)
    wait_for_checkpoint(processes[0], run_dir)
    processes[killed].kill()
    began = time.monotonic()
    status, _, errors = outcome(processes[1 - killed])
    assert time.monotonic() - began < 60
    if status == -signal.SIGABRT:  # JAX was first to end it.
        assert killed == 0 and "another task died" in errors
    else:
        assert status == 5, errors
        assert "another process of this job has ended" in errors
        assert "--resume" in errors and "Traceback" not in errors
    processes[killed].communicate()
    newest = saved(run_dir)[-1]
    budget = ("--total-timesteps", 32 * (newest + 4))
    said = train(path, run_dir, 2, "--resume", *budget)
    assert f"resuming after update {newest} of {newest + 4}" in said


@pytest.mark.slow
def test_a_signal_to_one_process_stops_all(path, tmp_path):
    run_dir = tmp_path / "run"
    processes = begin_two(path, run_dir, *LONG)
    wait_for_checkpoint(processes[0], run_dir)
    processes[1].send_signal(signal.SIGTERM)
    for process in processes:
        status, _, errors = outcome(process)
        assert status == 130, errors
        assert "Traceback" not in errors
    assert saved(run_dir)


@pytest.mark.slow
def test_a_full_disk_of_one_process_ends_the_job(path, tmp_path):
    run_dir = tmp_path / "run"
    processes = begin_two(path, run_dir, *LONG)
    wait_for_checkpoint(processes[0], run_dir)
    fill(run_dir / "metrics.jsonl")
    (status, _, errors), (other, _, also) = map(outcome, processes)
    assert status == 3, errors
    assert "No space left on device" in errors and "--resume" in errors
    assert other in (5, -signal.SIGABRT), also
    assert "another" in also


def fill(log):
    """What is written to a log from now on finds the disk full."""
    full = log.with_name("full")
    full.symlink_to("/dev/full")
    log.rename(log.with_name("kept"))
    full.rename(log)


@pytest.mark.slow
def test_a_disk_that_fills_up_costs_nothing_but_time(path, tmp_path):
    """One line says so; with room again, the run goes on from its checkpoint."""
    run_dir = tmp_path / "run"
    process = subprocess.Popen(
        arguments("train", path, "--run-dir", run_dir, *LONG),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=on(2),
    )
    wait_for_checkpoint(process, run_dir)
    fill(run_dir / "metrics.jsonl")
    status, _, errors = outcome(process)
    assert status == 3
    first, *rest = errors.splitlines()
    assert first.startswith("error: ") and "No space left on device" in first
    assert len(rest) == 1 and rest[0].endswith("--resume")
    (run_dir / "kept").replace(run_dir / "metrics.jsonl")
    newest = saved(run_dir)[-1]
    budget = ("--total-timesteps", 32 * (newest + 4))
    said = train(path, run_dir, 2, "--resume", *budget)
    assert f"resuming after update {newest} of {newest + 4}" in said
    whole = tmp_path / "whole"
    train(path, whole, 2, *budget)
    assert_same(whole, run_dir)
    assert lineage(whole) == lineage(run_dir)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--process-id", 0], "--run-dir: expected"),
        (["--run-dir", "{home}/run", "--process-id", 0], "coordinator"),
        (["--run-dir", "{home}/run", "--cluster"], "coordinator"),
    ],
)
def test_jobs_that_cannot_start_are_said(path, tmp_path, options, said):
    options = [str(option).format(home=tmp_path) for option in options]
    done = command("train", path, *options, timeout=LIMIT)
    assert done.returncode == 2
    assert said in done.stderr and "Traceback" not in done.stderr


def test_processes_take_equal_shares(path, tmp_path):
    for status, _, errors in both(path, tmp_path / "run", "--pbt.size", 7):
        assert status == 2
        assert "7 members: expected a multiple of the 2 processes" in errors


def test_members_have_no_more_devices_than_there_are(path, tmp_path):
    more = ("--devices-per-member", 4, "--run-dir", tmp_path / "run")
    done = command("train", path, *more, timeout=LIMIT, environment=on(3))
    assert done.returncode == 2 and "Traceback" not in done.stderr
    assert "Config.devices_per_member = 4: expected up to 3" in done.stderr


def test_a_run_that_is_there_is_refused_by_all_processes(path, shared):
    (status, _, errors), (other, _, also) = both(path, shared[0])
    assert status == other == 2
    assert "holds a run already" in errors and "process 0 cannot go on" in also

"""Whatever ends a run, it goes on as if nothing had happened."""

import errno
import json
import os
import random
import shutil
import signal
import time
from contextlib import closing, contextmanager
from unittest import mock

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from runs import (
    EXPERIMENT,
    MEMORIES,
    assert_same,
    begin,
    called,
    command,
    event_steps,
    leaves,
    rows,
    saved,
)
from signalled import Line, signalled

from ppo_jax import fit
from ppo_jax.host.devices.mesh import Layout
from ppo_jax.host.run_dir import experiment, files, presence
from ppo_jax.host.run_dir.checkpoint import Checkpointer, CheckpointError

POOLED = (
    EXPERIMENT.format(memory="")
    + """
import dataclasses
from ppo_jax import envs, optimizers, schedules

config = dataclasses.replace(
    config,
    env=envs.ResetPool(TimeLimitChain(limit=3, negative=0.5), size=2),
    optimizer=optimizers.Adam(schedule=schedules.Constant()),
)
"""
)
STALLING = (
    EXPERIMENT
    + """
import dataclasses
import pathlib
import time
import jax
from ppo_jax.component import component

@component
class Stalling(TimeLimitChain):
    def step(self, key, state, action):
        timestep, state = super().step(key, state, action)
        one = jax.ShapeDtypeStruct((), "float32")
        sleepy = jax.pure_callback(
            stall, one, timestep.reward, vmap_method="sequential"
        )
        return timestep._replace(reward=sleepy), state

calls = 0

def stall(reward):
    global calls
    calls += 1
    if calls > 400:
        pathlib.Path("{stalled}").touch()
        time.sleep(600)
    return reward

config = dataclasses.replace(config, env=Stalling(limit=5), stall_seconds={seconds})
"""
)

WIDER = """
import jax
from ppo_jax.component import component

@component
class Mlp(networks.Mlp):
    def __call__(self, obs):
        out = super().__call__(obs)
        return jax.numpy.concatenate([out, out], axis=-1)

network = networks.ActorCritic(torso=Mlp(hidden=()))
config = dataclasses.replace(config, network=network)
"""


@pytest.fixture(params=MEMORIES)
def memory(request):
    return MEMORIES[request.param]


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    """An experiment whose environments have pools of starts."""
    path = tmp_path_factory.mktemp("resume") / "experiment.py"
    path.write_text(POOLED)
    return path


@pytest.fixture(scope="module")
def finished(path):
    """A run that nothing disturbed."""
    run_dir = path.parent / "finished"
    assert called("train", path, "--run-dir", run_dir).returncode == 0
    return run_dir


@pytest.fixture
def run_dir(finished, tmp_path):
    """A copy of it, to be damaged."""
    return shutil.copytree(finished, tmp_path / "run")


def budget(updates):
    return ("--total-timesteps", 32 * updates)


def being_saved(run_dir):
    return any(".orbax-checkpoint-tmp" in p.name for p in run_dir.rglob("*"))


@pytest.mark.slow
def test_killed_at_any_moment_a_run_ends_the_same(tmp_path, memory):
    """PROP-18.1: ten kills at random moments, some inside a save, for each memory."""
    path = tmp_path / "experiment.py"
    path.write_text(EXPERIMENT.format(memory=memory))
    budget = ("--total-timesteps", 32 * 400)
    whole, broken = tmp_path / "whole", tmp_path / "broken"
    assert command("train", path, "--run-dir", whole, *budget).returncode == 0
    moment, kills, in_save = random.Random(0), 0, 0
    while kills < 10:
        resume = ["--resume"] if (broken / "config.json").exists() else []
        process = begin("train", path, "--run-dir", broken, *budget, *resume)
        for line in process.stdout:
            if "steps/s" in line:
                break
        time.sleep(moment.uniform(0.0, 0.5))
        process.kill()
        kills += 1
        process.stdout.close()
        assert process.wait() == -signal.SIGKILL
        in_save += being_saved(broken)
    end = command("train", path, "--run-dir", broken, "--resume")
    assert end.returncode == 0, end.stderr
    print(f"{kills} kills, {in_save} inside a save")
    assert in_save
    assert_same(whole, broken)
    assert not being_saved(broken)


def first_checkpoint(run_dir):
    return run_dir / "checkpoints" / "4"


FULL_DISK = 0


@pytest.fixture(scope="module")
def cut_short(path):
    """Runs that a signal or a full disk ended, by either: directories and what is said.

    They share a process, which compiles once; the last of them ends it.
    """
    ways = (signal.SIGINT, FULL_DISK, signal.SIGTERM, signal.SIGKILL)
    run_dirs = [path.parent / f"cut_short_{way}" for way in ways]
    train = [("train", path, "--run-dir", run_dir) for run_dir in run_dirs]
    ends = signalled(
        *(
            Line(words, (way,), first_checkpoint(run_dir))
            if way
            else Line(words, most=12288)
            for way, run_dir, words in zip(ways, run_dirs, train, strict=True)
        )
    )
    return dict(zip(ways, zip(run_dirs, ends, strict=True), strict=True))


def test_killed_once_a_run_ends_the_same(path, finished, cut_short):
    """PROP-18.1: SIGKILL after the first checkpoint."""
    broken, done = cut_short[signal.SIGKILL]
    assert done.returncode == -signal.SIGKILL
    again = called("train", path, "--run-dir", broken, "--resume")
    assert again.returncode == 0, again.stderr
    assert_same(finished, broken)


@pytest.fixture(scope="module")
def halves(path):
    """A run in two halves, and what the second half said."""
    half = path.parent / "half"
    first = called("train", path, "--run-dir", half, *budget(12))
    assert first.returncode == 0, first.stderr
    assert leaves(half)[0] == 12
    rest = called("train", path, "--run-dir", half, "--resume", *budget(24))
    assert rest.returncode == 0, rest.stderr
    return half, rest.stdout


def test_half_a_run_with_pools_of_starts_and_then_the_rest(finished, halves):
    """PROP-18.1: pools are a part of the environments' state."""
    half, _ = halves
    assert_same(finished, half)
    assert any(row["rollout/reused_starts"] > 0 for row in rows(half))
    table = (half / "metrics.md").read_text()
    assert "| `rollout/reused_starts` | episodes |" in table


def test_half_the_budget_and_then_the_rest(path, finished, halves):
    """PROP-18.1: N updates, saved, and N more equal 2 N; the new budget is said."""
    half, said = halves
    assert "total_timesteps: 384 -> 768" in said
    assert_same(finished, half)
    over = called("train", path, "--run-dir", half, "--resume", *budget(12))
    assert over.returncode == 0
    assert "24 updates are done; nothing is left of 12\n" in over.stdout
    assert_same(finished, half)


def test_a_changed_number_outlives_a_kill_before_the_next_checkpoint(
    run_dir, tmp_path, monkeypatch
):
    """What a checkpoint was trained with is in it, not in the files beside it.

    These are read when nobody else is at work there, and kept when others follow.
    """
    overrides = ["--total-timesteps", str(32 * 26), "--gamma", "0.625"]
    described = (run_dir / "config.json").read_text().replace('"0.99"', '"0.625"')

    @contextmanager
    def alone(place, alone=presence.alone):
        """Another process has just ended."""
        (place / "overrides.json").write_text(json.dumps(overrides))
        (place / "config.json").write_text(described)
        with alone(place):
            yield

    monkeypatch.setattr(presence, "alone", alone)
    edited, text = tmp_path / "edited.py", (run_dir / "experiment.py").read_text()
    edited.write_text(f"{text}\n# Edited.\n")
    done = called("train", edited, "--run-dir", run_dir, "--resume")
    assert done.returncode == 0, done.stderr
    assert "gamma: 0.99 -> 0.625" in done.stdout
    kept = run_dir / "former" / "24"
    said = "resuming with another experiment.py; what it was trained with is kept in "
    assert f"{said}{kept}\n" in done.stdout
    assert (kept / "experiment.py").read_text() == text
    assert any(leaf.size == 1 and leaf == 0.625 for leaf in leaves(run_dir)[1])


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_the_first_signal_saves_and_the_run_goes_on(path, finished, cut_short, number):
    """PROP-18.1: interrupted between two phases."""
    broken, done = cut_short[number]
    if done.returncode != 0:  # It was not about to finish anyway.
        assert done.returncode == 130, done.stderr
        assert "--resume" in done.stdout and "Traceback" not in done.stderr
    again = called("train", path, "--run-dir", broken, "--resume")
    assert again.returncode == 0, again.stderr
    assert_same(finished, broken)


def stalled(tmp_path, seconds):
    """The file of an experiment, where its run is to be, and what there is then."""
    path, run_dir, sign = (tmp_path / x for x in ("stalling.py", "run", "stalled"))
    path.write_text(STALLING.format(memory="", seconds=seconds, stalled=sign))
    return path, run_dir, sign


def test_a_second_signal_stops_at_once(tmp_path):
    """And the first one does not."""
    path, run_dir, sign = stalled(tmp_path, 600)
    twice, train = (signal.SIGINT,) * 2, ("train", path, "--run-dir", run_dir)
    (done,) = signalled(Line(train, twice, sign))
    assert done.returncode == 130 and "once more" in done.stdout
    assert done.stdout.count("gets signal") == 2
    assert saved(run_dir) and leaves(run_dir)


@pytest.mark.slow
def test_what_never_comes_back_is_said_and_ended(tmp_path):
    path, run_dir, _ = stalled(tmp_path, 20)
    process = begin("train", path, "--run-dir", run_dir)
    output, _ = process.communicate(timeout=600)
    assert process.returncode == 4, output
    assert "nothing has come back for" in output and "--resume" in output
    assert "Traceback" not in output
    assert saved(run_dir) and leaves(run_dir)


def cut(file):
    file.write_bytes(file.read_bytes()[: file.stat().st_size // 2])


@pytest.mark.parametrize("damage", [cut, os.remove], ids=["cut", "removed"])
@pytest.mark.parametrize(
    "name", ["meta/metadata", "population/manifest.ocdbt", "population/d/*"]
)
def test_a_damaged_checkpoint_falls_back(tmp_path, damage, name):
    tree = {"x": jnp.arange(1000.0), "key": jax.random.key(1)}
    checkpoints = Checkpointer(tmp_path)
    for update in (1, 2):
        checkpoints.save(update, tree, fitness=1.0, meta={})
    checkpoints.close()
    for file in (tmp_path / "checkpoints" / "2").glob(name):
        damage(file)
    checkpoints = Checkpointer(tmp_path)
    assert checkpoints.restore(tree)[0] == 1
    checkpoints.rewind(1)
    checkpoints.save(2, tree, fitness=0.0, meta={})
    checkpoints.close()
    checkpoints = Checkpointer(tmp_path)
    assert checkpoints.restore(tree)[0] == 2
    assert checkpoints.restore(tree, best=True)[0] == 1
    checkpoints.close()


@pytest.mark.parametrize("place", [500, 2000, 2900])
def test_a_bit_that_turned_is_damage(tmp_path, place):
    """Files of numbers have no checksum of their own."""
    numbers = np.random.default_rng(0).normal(size=1000).astype(np.float32)
    checkpoints, tree = Checkpointer(tmp_path), {"x": numbers}
    for update in (1, 2):
        checkpoints.save(update, tree, fitness=1.0, meta={})
    checkpoints.close()
    files = (tmp_path / "checkpoints" / "2" / "population").rglob("d/*")
    (file,) = [file for file in files if file.stat().st_size > 3000]
    data = bytearray(file.read_bytes())
    data[place] ^= 1
    file.write_bytes(data)
    checkpoints = Checkpointer(tmp_path)
    found, restored, _ = checkpoints.restore(tree)
    checkpoints.close()
    assert found == 1
    np.testing.assert_array_equal(restored["x"], numbers)


TENSORSTORE = 'Error reading "x": [OS error 5: EIO Input/output error]'


@pytest.mark.parametrize(
    "error",
    [
        OSError(errno.EMFILE, "Too many open files"),
        OSError(errno.ETIMEDOUT, "Connection timed out"),
        OSError(errno.ENOTCONN, "Transport endpoint is not connected"),
        ValueError(TENSORSTORE),
    ],
)
def test_what_may_be_read_later_is_no_damage(tmp_path, monkeypatch, error):
    """An older checkpoint stands in for a damaged one, and newer rows are cut away."""
    tree = {"x": jnp.zeros(3)}
    with closing(Checkpointer(tmp_path)) as checkpoints:
        for update in (1, 2):
            checkpoints.save(update, tree, fitness=1.0, meta={})
    with closing(Checkpointer(tmp_path)) as checkpoints:
        with monkeypatch.context() as short:
            fails = mock.Mock(side_effect=error)
            short.setattr(checkpoints, "_population", fails)
            with pytest.raises(
                OSError, match=r"2: cannot be read now \(.*(error 5|Errno)"
            ):
                checkpoints.restore(tree)
        assert checkpoints.restore(tree)[0] == 2


def test_what_is_no_checkpoint_stays(tmp_path):
    """Copies, files of a desktop, and what is linked to; only saves cut off go."""
    tree, folder = {"x": jnp.zeros(3)}, tmp_path / "checkpoints"
    with closing(Checkpointer(tmp_path)) as checkpoints:
        for update in (1, 2):
            checkpoints.save(update, tree, fitness=1.0, meta={})
    shutil.copytree(folder / "2", folder / "2_keep")
    shutil.move(folder / "2", tmp_path / "elsewhere")
    (folder / "2").symlink_to(tmp_path / "elsewhere")
    (folder / ".DS_Store").touch()
    (folder / "3.orbax-checkpoint-tmp").mkdir()
    for number in (1, 2):
        with closing(Checkpointer(tmp_path)) as checkpoints:
            checkpoints.rewind(1)
            assert checkpoints.restore(tree)[0] == 1
            checkpoints.save(2, tree, fitness=1.0, meta={})
        aside = {f"2.aside-{i}" for i in range(1, number + 1)}
        kept = {"1", "2", "2_keep", ".DS_Store", *aside}
        assert {path.name for path in folder.iterdir()} == kept
    assert [*(tmp_path / "elsewhere").iterdir()]


def test_only_a_finite_fitness_is_the_best(tmp_path):
    checkpoints = Checkpointer(tmp_path)
    scores = [2.0, 5.0, float("nan"), 3.0, -float("inf"), 4.0]
    for update, score in enumerate(scores):
        checkpoints.save(update, {"x": jnp.zeros(())}, score, {})
    checkpoints.close()
    assert saved(tmp_path) == [1, 4, 5]


@pytest.mark.parametrize("read", ["_meta", "_population"])
def test_a_best_that_is_replaced_meanwhile_is_the_new_one(tmp_path, monkeypatch, read):
    """A run goes on to train while another process evaluates it."""
    tree, asked = {"x": jnp.zeros(())}, getattr(Checkpointer, read)
    with closing(Checkpointer(tmp_path)) as run:
        for update, score in enumerate([3.0, 1.0, 2.0]):
            run.save(update, tree, score, {})

        def meanwhile(self, step, *more):
            if step == 0 and step in saved(tmp_path):
                monkeypatch.setattr(Checkpointer, read, asked)
                run.save(3, tree, 4.0, {})
                run.save(4, tree, 1.0, {})
                run._manager.wait_until_finished()
                monkeypatch.setattr(Checkpointer, read, meanwhile)
            return asked(self, step, *more)

        monkeypatch.setattr(Checkpointer, read, meanwhile)
        with closing(Checkpointer(tmp_path)) as reader:
            assert reader.restore(tree, best=True)[0] == 3


@pytest.mark.parametrize(
    ("template", "said"),
    [
        ({"x": jnp.zeros(3)}, "x: float32[2] -> float32[3]"),
        ({"x": jnp.zeros(2, jnp.int32)}, "x: float32[2] -> int32[2]"),
        ({"x": jnp.zeros(2), "y": jnp.zeros(1)}, "y: absent -> float32[1]"),
        ({}, "x: float32[2] -> absent"),
    ],
)
def test_other_leaves_are_an_error_that_names_them(tmp_path, template, said):
    """PROP-18.2: missing, additional and reshaped leaves."""
    checkpoints = Checkpointer(tmp_path)
    checkpoints.save(1, {"x": jnp.zeros(2)}, fitness=0.0, meta={})
    with pytest.raises(CheckpointError) as error:
        checkpoints.restore(template)
    assert said in str(error.value)
    checkpoints.close()


def test_a_run_falls_back_and_goes_on(finished, run_dir):
    """PROP-18.1: the newest checkpoint is damaged, and a save was cut off."""
    cut(run_dir / "checkpoints" / "24" / "population" / "manifest.ocdbt")
    (run_dir / "checkpoints" / "25.orbax-checkpoint-tmp").mkdir()
    done = called("train", run_dir / "experiment.py", "--run-dir", run_dir, "--resume")
    assert done.returncode == 0, done.stderr
    assert "checkpoint 24 cannot be read" in done.stdout
    aside = run_dir / "checkpoints" / "24.aside-1"
    assert f"checkpoint 24 is set aside in {aside}" in done.stdout and aside.is_dir()
    assert "Traceback" not in done.stderr
    assert_same(finished, run_dir)
    assert saved(run_dir) == saved(finished) and not being_saved(run_dir)


def test_nothing_left_to_restore(run_dir):
    for file in run_dir.glob("checkpoints/*/population/manifest.ocdbt"):
        cut(file)
    for name, *options in (
        ("train", run_dir / "experiment.py", "--run-dir", run_dir, "--resume"),
        ("evaluate", run_dir),
    ):
        done = called(name, *options)
        assert done.returncode == 2
        assert "no checkpoint can be restored" in done.stderr
        assert "Traceback" not in done.stderr


def contents(run_dir):
    """All that a run directory holds, but for its lock."""
    return {
        path.relative_to(run_dir): path.read_bytes()
        for path in run_dir.rglob("*")
        if path.is_file() and path.name != ".lock"
    }


def test_a_log_without_its_checkpoints_is_not_begun_anew(path, run_dir):
    """Neither by another run there, nor by the same at the second try."""
    shutil.rmtree(run_dir / "checkpoints")
    before = contents(run_dir)
    for options in (["--resume"], ["--resume"], []):
        done = called("train", path, "--run-dir", run_dir, *options)
        assert done.returncode == 2
        said = f"{run_dir}: the log reaches step 768, but no checkpoint is there"
        assert said in done.stderr
        assert contents(run_dir) == before


def test_an_experiment_that_does_not_fit_is_not_kept(
    path, run_dir, tmp_path, monkeypatch
):
    """A torso whose code was edited: what was trained stays what commands find."""
    monkeypatch.setattr(Layout, "programs", lambda *_: [])  # None would be run.
    other, before = tmp_path / "other.py", contents(run_dir)
    other.write_text(path.read_text() + WIDER)
    done = called("train", other, "--run-dir", run_dir, "--resume")
    assert done.returncode == 2 and "its leaves are not those" in done.stderr
    assert contents(run_dir) == before
    config = experiment.load(other, [])
    with pytest.raises(CheckpointError, match="its leaves are not those"):
        fit(config, run_dir, resume=True, quiet=True)
    assert contents(run_dir) == before


def test_a_log_is_cut_back_and_mended(path, finished, run_dir):
    """Rows after the checkpoint, half a row, and events that were lost."""
    shutil.rmtree(run_dir / "checkpoints" / "24")
    with (run_dir / "metrics.jsonl").open("a") as file:
        file.write('{"step": 8')
    for file in run_dir.glob("events*"):
        cut(file)
    done = called("train", path, "--run-dir", run_dir, "--resume")
    assert done.returncode == 0, done.stderr
    assert rows(run_dir) == rows(finished)
    assert event_steps(run_dir) == event_steps(finished)


def test_a_full_disk_is_said(path, cut_short):
    run_dir, done = cut_short[FULL_DISK]
    assert done.returncode == 3, done.stderr
    assert "error:" in done.stderr and "--resume" in done.stderr
    assert "Traceback" not in done.stderr
    again = called("train", path, "--run-dir", run_dir, "--resume")
    assert again.returncode == 0, again.stderr
    assert len(rows(run_dir)) == 6


def test_a_disk_that_is_full_before_the_first_row_is_said_too(
    path, run_dir, monkeypatch
):
    """It is no mistake of the experiment's, which is kept then."""
    before = contents(run_dir)
    error = OSError(errno.ENOSPC, "No space left on device")
    with monkeypatch.context() as short:
        short.setattr(files, "write_bytes", mock.Mock(side_effect=error))
        done = called("train", path, "--run-dir", run_dir, "--resume")
    assert done.returncode == 3, done.stderr
    assert "No space left on device\ngo on with: python -m" in done.stderr
    assert contents(run_dir) == before


def test_a_run_directory_that_cannot_be(path, tmp_path):
    (tmp_path / "file").write_text("")
    for run_dir in (tmp_path / "file", tmp_path / "file" / "run"):
        done = called("train", path, "--run-dir", run_dir)
        assert done.returncode == 2
        assert str(run_dir) in done.stderr and "Traceback" not in done.stderr

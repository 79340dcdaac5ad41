"""Training from Python: the same run as the command's, and a guest in its process."""

import dataclasses
import json
import os
import platform
import re
import shlex
import shutil
import signal
import sys
import threading
import time
from pathlib import Path
from types import SimpleNamespace
from unittest import mock

import chex
import jax
import numpy as np
import pytest
import zygote
from brief import experiment
from reported import unnamed
from runs import ENVIRONMENT, rows, saved

from ppo_jax import (
    PBT,
    Uniform,
    critics,
    evaluate,
    export,
    fit,
    fit_all,
    load,
    metrics,
    networks,
    train,
)
from ppo_jax.arrays import devices
from ppo_jax.component import component, replace_at
from ppo_jax.envs.probes import TimeLimitChain
from ppo_jax.errors import UserError
from ppo_jax.host.agents.trained import Trained
from ppo_jax.host.loop import saving, training
from ppo_jax.host.loop.stopwatch import COMPILED
from ppo_jax.host.process import console, watchdog
from ppo_jax.host.run_dir import ending, presence
from ppo_jax.host.run_dir.checkpoint import Checkpointer
from ppo_jax.optimizers import Adam
from ppo_jax.schedules import Constant

ADAM = Adam(schedule=Constant())
CONFIG = experiment(TimeLimitChain(limit=5), optimizer=ADAM, eval_phases=1)
HALF = dataclasses.replace(CONFIG, total_timesteps=CONFIG.total_timesteps // 3)
SPACE = {"optimizer.learning_rate": Uniform(1e-4, 1e-2)}
MEMBERS = dataclasses.replace(CONFIG, pbt=PBT(SPACE, size=4, interval=2))
FILE = """
from brief import experiment
from ppo_jax.envs.probes import TimeLimitChain
from ppo_jax.optimizers import Adam
from ppo_jax.schedules import Constant

adam = Adam(schedule=Constant())
config = experiment(TimeLimitChain(limit=5), optimizer=adam, eval_phases=1)
"""


@pytest.fixture(scope="module")
def alone():
    """A run that was kept nowhere."""
    return fit(CONFIG, quiet=True)


@pytest.fixture(scope="module")
def members():
    return fit(MEMBERS, quiet=True)


@pytest.fixture(scope="module")
def kept(tmp_path_factory, alone):
    """The directory of the same run."""
    run_dir = tmp_path_factory.mktemp("fit") / "run"
    fit(CONFIG, run_dir, quiet=True)
    return run_dir


CORES = devices.cores()
PROCESS = """
import dataclasses, sys, jax, ppo_jax
sys.path += {path}
{file}
few = dict(optimizer=ppo_jax.optimizers.Sgd(), terms=(ppo_jax.terms.Surrogate(),))
long = dataclasses.replace(config, num_steps=64, total_timesteps=512, **few)
three = [dataclasses.replace(config, seed=seed) for seed in range(3)]
{code}
print(jax.device_count())
"""


def without_clock(rows):
    return [{k: v for k, v in row.items() if "time/" not in k} for row in rows]


def ended(run_dir):
    """How a run ended, as its directory has it."""
    return vars(ending.last(run_dir))


def assert_same(found, expected):
    """Two runs are the same, bit by bit."""
    assert (found.update, without_clock(found.rows)) == (
        expected.update,
        without_clock(expected.rows),
    )
    both = [jax.tree.leaves(x.population.runs.learner) for x in (found, expected)]
    chex.assert_trees_all_equal(*both)


def test_a_run_that_is_kept_nowhere_writes_nothing(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    trained = fit(HALF, quiet=True)
    assert (trained.ending, trained.update) == ("finished", 2)
    assert not list(tmp_path.iterdir())
    assert capsys.readouterr() == ("", "")


@pytest.mark.parametrize(
    ("code", "cores", "used"),
    [
        ("assert len(ppo_jax.fit_all(three)) == 3", CORES, min(CORES, 3)),
        ("experiment('CartPole-v1'); ppo_jax.fit(long)", CORES, min(CORES, 2)),
        ("import gymnax; ppo_jax.fit(config)", 1, 1),
    ],
)
def test_all_cores_are_used_unless_jax_has_started(code, cores, used):
    """As the command does: two for three agents, the last of them trained twice.

    Two have enough of a minibatch to share it. An environment of gymnax starts JAX, on
    all cores; where it is too late, `fit` says so.
    """
    chosen = ("NPROC", "JAX_NUM_CPU_DEVICES")
    environment = {k: v for k, v in ENVIRONMENT.items() if k not in chosen}
    words = ["-c", PROCESS.format(path=sys.path, file=FILE, code=code)]
    done = zygote.run(words, environment)
    assert done.returncode == 0, done.stderr
    said = done.stdout.splitlines()
    if cores < CORES:
        late = f"JAX had started, on 1 of {CORES} cores; for all of them, begin Python "
        assert said.pop(0) == f"{late}with JAX_NUM_CPU_DEVICES={CORES} set"
    layout, *_, found = said
    assert int(found) == cores
    shared = f", {used} devices" if used > 1 else ""
    assert layout == f"training on cpu (cpu){shared}, in memory"


def test_python_and_the_command_train_the_same(tmp_path, alone, kept, capsys):
    """And a directory that Python made is one for commands."""
    path, run_dir, figures = (tmp_path / name for name in ("x.py", "run", "figures"))
    path.write_text(FILE)
    assert train.main([str(path), "--run-dir", str(run_dir), "--no-report"]) == 0
    ours, theirs = (sorted(p.name for p in x.iterdir()) for x in (kept, run_dir))
    assert [name.split(".1")[0] for name in ours] == [x.split(".1")[0] for x in theirs]
    assert (kept / "config.json").read_text() == (run_dir / "config.json").read_text()
    assert rows(kept) == rows(run_dir) == without_clock(alone.rows)
    assert_same(load(kept), alone)
    assert_same(load(run_dir), alone)
    for sample, options in ((False, []), (True, ["--sample", "--seed", "3"])):
        line = [str(kept), "--episodes", "7", "--json", str(figures), *options]
        assert evaluate.main(line) == 0
        said = json.loads(figures.read_text())
        ours = alone.evaluate(7, seed=3 if sample else None, sample=sample)
        assert ours == {name: said[name] for name in ours}


def test_python_and_the_command_export_the_same(tmp_path, alone, members, kept, capsys):
    """But for the name of the run; of a population the fittest member."""
    fitness = np.array([1.0, 2.0, 3.0, np.nan], np.float32)
    population = dataclasses.replace(members.population, fitness=fitness)
    members = dataclasses.replace(members, population=population)
    everybody, both = members.save(tmp_path / "members"), []
    for number, (trained, run_dir) in enumerate(((alone, kept), (members, everybody))):
        ours, theirs = (tmp_path / f"{who}{number}" for who in ("ours", "theirs"))
        assert trained.export(ours, "numpy") == ours
        line = [str(run_dir), "--format", "numpy", "--out", str(theirs)]
        assert export.main(line) == 0
        for name in ("policy.py", "policy.npz"):
            assert (ours / name).read_bytes() == (theirs / name).read_bytes()
        said = [json.loads((x / "policy.json").read_text()) for x in (ours, theirs)]
        assert [one["trained"].pop("run") for one in said] == [None, run_dir.name]
        assert said[0] == said[1]
        both.append(said[0]["trained"])
    assert [one["members"] for one in both] == [1, 4]
    assert [one["member"] for one in both] == [0, 2]
    assert both[0]["evaluation"]["mean_reward"] == 5.0


def test_a_run_goes_on(tmp_path, alone, capsys):
    """By Python, and by the command from the file that Python wrote."""
    again = tmp_path / "again"
    fit(HALF, again, quiet=True)
    assert_same(fit(CONFIG, again, resume=True), alone)
    said = "another total_timesteps: 128 -> 384; schedules span all of it\n"
    assert said in capsys.readouterr().out
    other = tmp_path / "other"
    fit(HALF, other, quiet=True)
    options = ["--run-dir", str(other), "--resume", "--total-timesteps", "384"]
    assert train.main([str(other / "experiment.py"), *options]) == 0
    assert_same(load(other), alone)
    assert train.main([str(other / "experiment.py"), *options, "--seed", "5"]) == 0
    said = "another seed: 0 -> 5; evaluations and generations draw by it, rollouts go"
    assert said in capsys.readouterr().out


def test_a_run_of_parts_that_no_file_defines(tmp_path, capsys):
    """It is evaluated and goes on in Python; commands say so."""

    @component
    class Here(TimeLimitChain):
        """Of no module."""

    config = dataclasses.replace(HALF, env=Here(limit=5))
    run_dir = tmp_path / "run"
    trained = fit(config, run_dir, quiet=True)
    assert unnamed(run_dir, "A run") == set()
    found = load(run_dir, config=config)
    assert_same(found, trained)
    assert evaluate.main([str(run_dir)]) == 2
    said = capsys.readouterr().err
    assert "test_fit is in no file that can be imported. Go on in Python" in said
    assert f"ppo_jax.load('{run_dir}', config=config)" in said
    more = dataclasses.replace(config, total_timesteps=384)
    assert fit(more, run_dir, resume=True, quiet=True).update == 6


def test_a_file_that_is_kept_stays_where_no_other_can_be_made(tmp_path, capsys):
    """As where a run goes on in a notebook that defines a sink of its own."""

    @component
    class Here(metrics.Sink):
        """Of no module."""

        def write(self, step, metrics):
            pass

    run_dir = tmp_path / "run"
    fit(HALF, run_dir, quiet=True)
    names = ("experiment.py", "overrides.json")
    before = [(run_dir / name).read_bytes() for name in names]
    more = dataclasses.replace(CONFIG, sinks=(Here(),))
    assert fit(more, run_dir, resume=True, quiet=True).update == 6
    assert [(run_dir / name).read_bytes() for name in names] == before
    assert '"384"' in (run_dir / "config.json").read_text()
    assert not (run_dir / "made_in_python.txt").exists()
    assert evaluate.main([str(run_dir), "--episodes", "2"]) == 0
    line = [str(run_dir / "experiment.py"), "--run-dir", str(run_dir), "--resume"]
    assert train.main([*line, "--no-report", "--total-timesteps", "384"]) == 0


def test_a_callback_hears_every_phase_and_may_stop_the_run(tmp_path, alone):
    heard = []

    def stop(step, metrics):
        heard.append((step, metrics["eval/mean_reward"]))
        return step >= 256

    run_dir = tmp_path / "run"
    trained = fit(CONFIG, run_dir, stop, quiet=True)
    assert heard == [(128, 5.0), (256, 5.0)]
    assert (trained.ending, trained.steps, saved(run_dir)[-1]) == ("stopped", 256, 4)
    assert ended(run_dir) == {"state": "stopped", "why": ""}
    assert_same(fit(CONFIG, run_dir, resume=True, quiet=True), alone)
    assert fit(HALF, callback=lambda *_: True, quiet=True).ending == "finished"


def test_a_callback_may_go_to_another_folder(tmp_path, monkeypatch, alone):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "elsewhere").mkdir()
    found = fit(CONFIG, "run", lambda *_: os.chdir(tmp_path / "elsewhere"), quiet=True)
    assert_same(found, alone)
    assert not [*(tmp_path / "elsewhere").iterdir()]
    assert_same(load(tmp_path / "run"), alone)


def test_what_a_callback_raises_is_raised_once_the_run_is_saved(tmp_path, alone):
    """Whatever it is: an error of a disk is not taken for one of ours."""
    error = OSError("mine")

    def fail(step, metrics):
        raise error

    run_dir = tmp_path / "run"
    with pytest.raises(OSError, match="mine") as caught:
        fit(CONFIG, run_dir, fail, quiet=True)
    assert caught.value is error
    assert saved(run_dir) == [2]
    assert ended(run_dir) == {"state": "failed", "why": "OSError: mine"}
    assert_same(fit(CONFIG, run_dir, resume=True, quiet=True), alone)
    assert ended(run_dir) == {"state": "finished", "why": ""}


def test_a_callback_may_take_as_long_as_it_likes(alone, monkeypatch, capsys):
    """As in a debugger: the process in which it waits is not ended."""
    config, left = dataclasses.replace(CONFIG, stall_seconds=1), []

    def wait(step, metrics):
        left.clear()
        time.sleep(1.8 * (step == 256))
        assert left == []

    monkeypatch.setattr(watchdog, "END", 1)
    monkeypatch.setattr(console.Guest, "leave", lambda _, status: left.append(status))
    assert_same(fit(config, callback=wait, quiet=True), alone)


@component
class Looking(metrics.Sink):
    """Waits until what it is told of is saved, which a thread of the run does."""

    run_dir: str = ""

    def write(self, step, metrics):
        update, deadline = step // CONFIG.steps_per_update, time.monotonic() + 5
        while update not in saved(Path(self.run_dir)):
            assert time.monotonic() < deadline
            time.sleep(0.001)
        FOUND.append(update)


FOUND = []


def test_a_run_is_saved_every_ten_minutes_before_a_sink_hears(
    tmp_path, alone, monkeypatch
):
    """It goes on as it would have done; here a phase takes so long."""
    monkeypatch.setattr(saving, "SECONDS", 0.0)
    run_dir, seldom = tmp_path / "run", dataclasses.replace(CONFIG, eval_phases=100)
    config = dataclasses.replace(seldom, sinks=(Looking(str(run_dir)),))

    def stop(step, row):
        return step == 256

    assert fit(config, run_dir, stop, quiet=True).ending == "stopped"
    assert FOUND == [2, 4]
    shutil.rmtree(run_dir / "checkpoints" / "4")
    trained = fit(config, run_dir, resume=True, quiet=True)
    assert FOUND == [2, 4, 2, 4, 6]
    learners = [x.population.runs.learner for x in (trained, alone)]
    chex.assert_trees_all_equal(*map(jax.tree.leaves, learners))


def test_an_interrupt_returns_what_there_is(alone):
    """The first; the second is raised. Signals are heard as before afterwards."""
    before = signal.getsignal(signal.SIGINT)

    def once(step, metrics):
        if step == 128:
            signal.raise_signal(signal.SIGINT)
            time.sleep(0.5)  # It is a listener in a thread that hears it.

    trained = fit(CONFIG, callback=once, quiet=True)
    assert (trained.ending, trained.steps) == ("interrupted", 256)

    heard = []

    def twice(step, metrics):
        heard.append(step)
        signal.raise_signal(signal.SIGINT)
        signal.raise_signal(signal.SIGINT)  # It comes with the first.
        heard.append("once")
        time.sleep(console.TOGETHER)
        signal.raise_signal(signal.SIGINT)

    with pytest.raises(KeyboardInterrupt):
        fit(CONFIG, callback=twice, quiet=True)
    assert heard == [128, "once"]
    assert signal.getsignal(signal.SIGINT) is before


@component
class Impatient(metrics.Sink):
    """Is told of a row, and stops the run at once."""

    def write(self, step, metrics):
        raise KeyboardInterrupt


def test_stopped_at_once_before_it_was_saved_a_run_begins_anew(tmp_path, alone):
    """By itself, by another one there, and when it is resumed."""
    run_dir, plain = tmp_path / "run", dataclasses.replace(CONFIG, eval_phases=3)
    config = dataclasses.replace(plain, sinks=(Impatient(),))
    for resume in (False, False, True):
        with pytest.raises(KeyboardInterrupt):
            fit(config, run_dir, resume=resume, quiet=True)
        assert (len(rows(run_dir)), saved(run_dir)) == (1, [])
        assert ended(run_dir) == {"state": "interrupted", "why": ""}
    found = fit(plain, run_dir, resume=True, quiet=True)
    learners = [x.population.runs.learner for x in (found, alone)]
    chex.assert_trees_all_equal(*map(jax.tree.leaves, learners))
    assert not (run_dir / "checkpoints" / "none_yet.txt").exists()


def test_nobody_trains_where_a_run_is_under_way(tmp_path, alone, kept, capsys):
    """Neither Python nor a command, and both say so in the same words."""
    path, before = tmp_path / "x.py", sorted(kept.rglob("*"))
    path.write_text(FILE)
    who = f"process {os.getpid()} on {platform.node()}"
    said = f"{kept}: a run is under way there, by {who}; wait until it has ended, or "
    asked = (
        lambda: fit(CONFIG, kept),
        lambda: fit(CONFIG, kept, resume=True),
        lambda: fit(CONFIG, kept, begin=alone),
        lambda: alone.save(kept),
    )
    with presence.alone(kept):
        for ask in asked:
            with pytest.raises(UserError, match=re.escape(said)):
                ask()
        assert train.main([str(path), "--run-dir", str(kept), "--resume"]) == 2
    assert said in capsys.readouterr().err
    assert sorted(kept.rglob("*")) == before
    assert ended(kept) == {"state": "finished", "why": ""}
    assert_same(load(kept), alone)


def test_a_run_directory_is_locked_while_it_is_written(tmp_path):
    """From before the experiment is stored to the end, and then no more."""
    run_dir, heard = tmp_path / "run", []

    def hear(step, metrics):
        heard.append(presence.is_alive(run_dir))
        with pytest.raises(UserError, match="a run is under way there"):
            fit(HALF, run_dir, quiet=True)

    fit(HALF, run_dir, hear, quiet=True)
    assert heard == [True] and not presence.is_alive(run_dir)


@component
class Hearing(metrics.Sink):
    """Remembers how runs begin, and the steps of their rows."""

    def begin(self, run):
        HEARD.append((run.name, run.step))

    def write(self, step, metrics):
        HEARD.append(step)


HEARD = []


def test_sinks_hear_of_runs_that_are_kept_nowhere(alone):
    """Which have no name."""
    fit(dataclasses.replace(CONFIG, sinks=(Hearing(),)), quiet=True)
    assert HEARD == [(None, 0), 128, 256, 384]


def test_a_run_in_another_thread(alone):
    found = []
    thread = threading.Thread(target=lambda: found.append(fit(CONFIG, quiet=True)))
    thread.start()
    thread.join()
    assert_same(found[0], alone)


def test_the_same_again_compiles_nothing(alone):
    """Nor do other numbers, or another seed."""
    names = []

    def hear(name, *_, **__):
        names.append(name)

    jax.monitoring.register_event_duration_secs_listener(hear)
    try:
        assert_same(fit(CONFIG, quiet=True), alone)
        fit(dataclasses.replace(CONFIG, gamma=0.5, seed=1), quiet=True)
        assert names.count(COMPILED) == 0
    finally:
        jax.monitoring.unregister_event_duration_listener(hear)


def test_members_of_a_population(members, tmp_path):
    """Curves of each where a row says them, and agents by themselves."""
    assert len(members.lineage) == 4
    evaluated, searched = (
        members.curves[x] for x in ("eval/mean_reward", "pbt/optimizer.learning_rate")
    )
    assert evaluated.steps.tolist() == [128, 256, 384]
    assert evaluated.values.shape == searched.values.shape == (4, 3)
    rates = [line["numbers"]["optimizer.learning_rate"] for line in members.lineage]
    np.testing.assert_array_equal(searched.values.T, rates[1:])
    assert members.curves["train/loss"].values.shape == (3,)
    figures = members.evaluate(3)
    assert figures["mean"].tolist() == [5.0] * 4
    one = members.member(np.int64(3))
    assert one.config.pbt is None
    assert one.config.optimizer.learning_rate == rates[-1][3]
    assert one.curves["eval/mean_reward"].values.tolist() == [5.0] * 3
    assert one.evaluate(3)["mean"] == 5.0
    theirs = jax.tree.map(lambda x: x[3], members.params)
    chex.assert_trees_all_equal(one.params, theirs)
    assert_same(load(members.save(tmp_path / "all")), members)
    chex.assert_trees_all_equal(load(tmp_path / "all", member=3).params, theirs)
    assert_same(load(one.save(tmp_path / "one")), one)


def test_a_member_that_was_saved_goes_on_by_itself(members, tmp_path, capsys):
    """By the command, whose log begins with the few metrics that members have."""
    run_dir = members.member(3).save(tmp_path / "one")
    line = [str(run_dir / "experiment.py"), "--run-dir", str(run_dir), "--resume"]
    for updates in (6, 8):
        assert train.main([*line, "--total-timesteps", str(64 * updates)]) == 0
        said = capsys.readouterr().out
        assert f"finished: {64 * updates} steps" in said and "report.html" in said
    assert load(run_dir).update == 8


def test_a_number_at_the_end_of_a_range_is_within_it(members, tmp_path):
    """In float32 it is 2.5e-12 below."""
    learner = members.population.runs.learner
    lowest = np.full(4, 1e-4, np.float32)
    config = replace_at(learner.config, "optimizer.learning_rate", lowest)
    runs = members.population.runs.replace(learner=learner.replace(config=config))
    population = members.population.replace(runs=runs)
    one = dataclasses.replace(members, population=population).member(0)
    assert one.config.optimizer.learning_rate == 1e-4
    assert_same(load(one.save(tmp_path / "one")), one)


def test_what_was_in_memory_is_saved_and_goes_on(tmp_path, alone):
    half = fit(HALF, quiet=True)
    run_dir = half.save(tmp_path / "run")
    (meta,) = run_dir.glob("checkpoints/*/meta/metadata")
    assert re.fullmatch("[0-9a-f]{16}", json.loads(meta.read_text())["id"])
    assert rows(run_dir) == without_clock(half.rows)
    assert ended(run_dir) == {"state": "finished", "why": ""}
    assert_same(fit(CONFIG, run_dir, resume=True, quiet=True), alone)


def test_checkpoints_are_chosen(kept, alone):
    assert load(kept).update == 6
    for number in (4, np.int64(4)):
        early = load(kept, checkpoint=number)
        assert (early.update, len(early.rows)) == (4, 2)
    assert load(kept, checkpoint="best").update in saved(kept)


def test_agents_are_loaded_with_the_numbers_that_are_given(kept, members, tmp_path):
    """But for those that a population searches, which are each member's own."""
    double = TimeLimitChain(limit=5, reward=2.0)
    found = load(kept, config=dataclasses.replace(CONFIG, env=double))
    assert found.evaluate(3)["mean"] == 2.0 * 5
    assert found.learner.config.env.reward == found.config.env.reward == 2.0
    assert load(kept).evaluate(3)["mean"] == 1.0 * 5
    slow = dataclasses.replace(ADAM, learning_rate=1e-3)
    other = dataclasses.replace(MEMBERS, env=double, optimizer=slow)
    loaded = load(members.save(tmp_path / "all"), config=other)
    assert loaded.evaluate(3)["mean"].tolist() == [2.0 * 5] * 4
    assert loaded.member(1).config.env.reward == 2.0
    chex.assert_trees_all_equal(
        loaded.learner.config.optimizer, members.learner.config.optimizer
    )


def test_bounds_stop_a_run_and_larger_ones_go_on(tmp_path, alone, capsys):
    """PROP-0: stop_at and max_seconds, of the command and of Python."""
    path, run_dir = tmp_path / "x y.py", tmp_path / "a run"
    path.write_text(FILE)
    line = [str(path), "--run-dir", str(run_dir)]
    bound = ["--stop-at", "eval/mean_reward", "5"]
    assert train.main([*line, *bound]) == 0
    said = capsys.readouterr().out
    assert "stopped: 128 steps" in said
    assert "eval/mean_reward is 5, which stop_at asked for" in said
    (again,) = re.findall("^go on with: python -m ppo_jax.train (.*)$", said, re.M)
    assert shlex.split(again) == [*line, "--resume"]
    assert train.main(shlex.split(again)) == 0
    assert saved(run_dir) == [2]
    larger = [*line, "--resume", "--stop-at", "eval/mean_reward", "6"]
    assert train.main([*larger, "--max-seconds", "1e-3"]) == 0
    assert "are over, which is max_seconds" in capsys.readouterr().out
    assert saved(run_dir) == [2]
    goal = {"eval/mean_reward": 6, "train/loss": -1e9}
    later = dataclasses.replace(CONFIG, stop_at=goal, max_seconds=3600)
    assert_same(fit(later, run_dir, resume=True, quiet=True), alone)


def test_seconds_count_over_all_lives_of_a_run(tmp_path):
    """PROP-0: and a bound that was passed before stops it at once."""
    run_dir = tmp_path / "run"
    longer = dataclasses.replace(CONFIG, total_timesteps=512)

    def slow(step, metrics):
        time.sleep(1.0)
        return step == 256

    first = fit(longer, run_dir, slow, quiet=True)
    elapsed = first.rows[-1]["time/time_elapsed"]
    assert elapsed > 1.0
    for seconds, update in ((elapsed, 4), (elapsed + 1e-4, 6), (1e9, 8)):
        bounded = dataclasses.replace(longer, max_seconds=seconds)
        trained = fit(bounded, run_dir, resume=True, quiet=True)
        assert trained.update == update
    assert trained.ending == "finished"


def wide(config):
    return dataclasses.replace(
        config, network=networks.ActorCritic(torso=networks.Mlp(hidden=(16,)))
    )


WRONG = {
    "config: expected a Config, got 'x.py' (str)": lambda x: fit("x.py"),
    "a class has to be called: Config(…)": lambda x: fit(type(CONFIG)),
    "fit runs on the host, not inside jit or vmap; for many seeds": lambda x: jax.vmap(
        lambda rate: fit(dataclasses.replace(CONFIG, optimizer=Adam(rate)))
    )(np.array([1e-3, 1e-4], np.float32)),
    "config.gamma: expected one number; many experiments are ppo_jax": lambda x: fit(
        dataclasses.replace(CONFIG, gamma=np.array([0.9, 0.99]))
    ),
    "callback: expected a function of a step and a row, got 3": lambda x: fit(
        CONFIG, callback=3
    ),
    "run_dir: expected a path, got 3 (int)": lambda x: fit(CONFIG, 3),
    "begin: expected what fit or load returned, got": lambda x: fit(
        CONFIG, begin=x.run_dir
    ),
    "resume: expected a run_dir as well": lambda x: fit(CONFIG, resume=True),
    "begin: a run that is resumed has begun": lambda x: fit(
        CONFIG, x.run_dir, resume=True, begin=x.alone
    ),
    "optimizer: expected an agent to begin with": lambda x: fit(CONFIG, optimizer=True),
    "holds a run already; give --resume to go on with it, in Python": lambda x: fit(
        CONFIG, x.run_dir
    ),
    "nowhere: no run to be found there": lambda x: fit(CONFIG, x.nowhere, resume=True),
    "a resumed run may change numbers and budgets only": lambda x: fit(
        wide(CONFIG), x.run_dir, resume=True
    ),
    "kernel: float32[1, 8] there, float32[1, 16] here": lambda x: fit(
        wide(CONFIG), begin=x.alone
    ),
    "no metric is called 'eval/mean'; the closest is 'eval/mean_reward'": lambda x: fit(
        dataclasses.replace(CONFIG, stop_at={"eval/mean": 1})
    ),
    "Config.max_seconds: expected a number > 0": lambda x: dataclasses.replace(
        CONFIG, max_seconds=-1
    ),
    "Config.stop_at: expected finite numbers by metric": lambda x: dataclasses.replace(
        CONFIG, stop_at={"x": float("inf")}
    ),
    "nowhere: no run to be found": lambda x: load(x.nowhere),
    "run_dir: expected a path, got None (NoneType)": lambda x: load(None),
    "no checkpoint 5; there are: ": lambda x: load(x.run_dir, checkpoint=5),
    "no checkpoint is called 'bets'; the closest is 'best'": lambda x: load(
        x.run_dir, checkpoint="bets"
    ),
    "config: expected a Config, got 'CartPole-v1' (str)": lambda x: load(
        x.run_dir, config="CartPole-v1"
    ),
    "member: expected 0 to 0, got 1": lambda x: load(x.run_dir, member=1),
    "member: expected 0 to 0, got -1": lambda x: x.alone.member(-1),
    "the experiment is not the one of this run": lambda x: load(
        x.run_dir, config=wide(CONFIG)
    ),
    "episodes: expected at least 1, got 0": lambda x: x.alone.evaluate(0),
    "seed: expected 0 to 2³² − 1, or None, got -1": lambda x: x.alone.evaluate(seed=-1),
    "kind: no format is called 'numpi'; the closest is 'numpy'": lambda x: (
        x.alone.export(x.nowhere, "numpi")
    ),
    "one with an export alone; it holds .lock, checkpoints": lambda x: x.alone.export(
        x.run_dir, "numpy"
    ),
    "run: holds a run already": lambda x: x.alone.save(x.run_dir),
}


@pytest.mark.parametrize("said", WRONG)
def test_what_cannot_be_is_said(said, alone, kept, tmp_path):
    """By name, before anything is written or trained."""
    given = SimpleNamespace(alone=alone, run_dir=kept, nowhere=tmp_path / "nowhere")
    before = sorted(kept.rglob("*"))
    with pytest.raises(UserError, match=re.escape(said)):
        WRONG[said](given)
    assert sorted(kept.rglob("*")) == before and not given.nowhere.exists()


def test_a_run_begins_with_what_another_one_has_learned(tmp_path, alone, kept, capsys):
    """In Python and by the command, before its first update and when it is resumed."""
    other = dataclasses.replace(HALF, env=TimeLimitChain(5, negative=0.5), seed=5)
    run_dir, path, again = tmp_path / "run", tmp_path / "x.py", tmp_path / "again"

    def fail(step, metrics):
        raise ValueError

    warm = fit(other, begin=alone, quiet=True)
    with pytest.raises(ValueError):
        fit(other, run_dir, fail, begin=alone, quiet=True)
    first = load(run_dir, checkpoint=0)
    chex.assert_trees_all_equal(first.params, alone.params)
    assert_same(load(run_dir), warm)
    cold = fit(other, quiet=True)
    with pytest.raises(AssertionError):
        assert_same(cold, warm)
    path.write_text(FILE)
    options = ["--env.negative", "0.5", "--seed", "5", "--total-timesteps", "128"]
    line = [str(path), "--run-dir", str(again), "--warm-start", str(kept), *options]
    assert train.main(line) == 0
    assert_same(load(again), warm)
    chex.assert_trees_all_equal(load(again, checkpoint=0).params, alone.params)
    assert alone.evaluate(2)["mean"] == 5.0


def test_a_run_that_lost_what_it_begins_with_is_begun_again(
    tmp_path, alone, kept, monkeypatch, capsys
):
    """It does not go on without, neither in Python nor by the command."""
    run_dir, path = tmp_path / "run", tmp_path / "x.py"
    path.write_text(FILE)
    line = [str(path), "--run-dir", str(run_dir), "--total-timesteps", "128"]

    with monkeypatch.context() as short:
        short.setattr(Checkpointer, "save", mock.Mock(side_effect=OSError("full")))
        assert train.main([*line, "--warm-start", str(kept)]) == 3
    said = f"{run_dir}: it stopped before what it begins with was saved; begin it again"
    assert train.main([*line, "--resume"]) == 2
    assert said in capsys.readouterr().err
    with pytest.raises(UserError, match=re.escape(said)):
        fit(HALF, run_dir, resume=True, quiet=True)
    warm = fit(HALF, run_dir, begin=alone, quiet=True)
    chex.assert_trees_all_equal(load(run_dir, checkpoint=0).params, alone.params)
    assert_same(fit(HALF, run_dir, resume=True, quiet=True), warm)


def test_a_head_that_is_another_one_is_said(capsys):
    config = dataclasses.replace(HALF, critic=critics.Quantile(4))
    fit(HALF, begin=Trained(config, training.start(config), 0))
    assert "heads of the critics: anew, as they are others" in capsys.readouterr().out


def test_the_policy_is_that_of_evaluations(alone, members):
    """Of a population that of its fittest member."""
    obs, reset = np.ones((3, 1), "f"), np.ones(3, bool)
    act = jax.jit(lambda policy: policy.act(policy.init(3), obs)[0])
    apply = CONFIG.build().apply
    mode = jax.jit(lambda *given: apply(*given).policy.mode()[0])
    for trained in (alone, members):
        one = trained.member(trained.fittest).learner
        expected = mode(one.params, (), obs[None], reset[None])
        np.testing.assert_array_equal(act(trained.policy), expected)


def test_agents_of_one_structure_are_trained_in_one_program(alone, capsys):
    """In their order, each as if it were alone, but for rounding."""
    numbers = enumerate((0.5, 0.6, 0.7), start=1)
    others = [dataclasses.replace(CONFIG, seed=i, gamma=gamma) for i, gamma in numbers]
    asked = [*others, HALF, CONFIG]
    found = fit_all(asked)
    assert capsys.readouterr().out.count("training on") == 2
    assert [trained.update for trained in found] == [6, 6, 6, 2, 6]
    assert [trained.config for trained in found] == asked
    for trained, config in zip(found, asked, strict=True):
        one = alone if config == CONFIG else fit(config, quiet=True)
        chex.assert_trees_all_close(trained.params, one.params, atol=1e-5)
        curves = (x.curves["eval/mean_reward"] for x in (trained, one))
        chex.assert_trees_all_equal(*curves)
    assert "train/loss" in found[3].curves
    with pytest.raises(UserError, match=r"configs\[1\].pbt: expected None"):
        fit_all([CONFIG, MEMBERS])

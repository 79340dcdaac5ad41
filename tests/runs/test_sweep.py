"""Sweeps as a user runs them: one program per structure, tables, kills."""

import json
import shutil
import time

import jax
import numpy as np
import pytest
from reported import unnamed
from runs import ALIKE, EXPERIMENT, begin, called
from scipy import stats

from ppo_jax.host.devices.mesh import PHASE
from ppo_jax.host.loop import training
from ppo_jax.host.programs.compiling import Compilation
from ppo_jax.host.run_dir import experiment
from ppo_jax.sweeps import cohorts, settings

RATE = "optimizer.learning_rate"
GRID = (f"{RATE}=1e-4,1e-2", "num_epochs=1,2")
ASKED = ("--seeds", 3, "--grid", *GRID, "--gamma", 0.9)
TARGET = """
import dataclasses
from ppo_jax import optimizers, schedules, terms
from ppo_jax.envs.probes import Target

config = dataclasses.replace(
    config,
    env=Target(),
    optimizer=optimizers.Adam(schedule=schedules.Constant()),
    terms=(terms.Surrogate(),),
)
"""


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    path = tmp_path_factory.mktemp("sweep") / "experiment.py"
    path.write_text(EXPERIMENT.format(memory="") + TARGET)
    return path


@pytest.fixture(scope="module")
def phases():
    """The programs of phases, as text, in the order in which they are lowered."""
    found, lower = [], Compilation.lower

    def lowered(program):
        made = lower(program)
        found.extend([made.as_text()] * (program.name == PHASE))
        return made

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Compilation, "lower", lowered)
        yield found


@pytest.fixture(scope="module")
def finished(path, phases):
    """A sweep that nothing disturbed, and what it said."""
    run_dir = path.parent / "finished"
    done = called("sweep", path, "--run-dir", run_dir, *ASKED)
    assert done.returncode == 0, done.stderr
    return run_dir, done.stdout


def results(run_dir):
    return json.loads((run_dir / "results.json").read_text())


def test_what_it_will_compile_and_need_is_said_first(finished):
    """Numbers share a program, structure does not."""
    before, _, after = finished[1].partition("batch 1 of 2")
    assert "12 runs: 4 settings x 3 seeds, programs to compile: 2" in before
    assert before.count("6 runs, 6 at once in ") == 2 and "MiB" in before
    assert "training on" not in before and "steps/s" in after


def test_what_memory_it_needs_says_the_program_that_trains(finished, phases):
    """Which is compiled for that, and found when it is to train."""
    assert phases[:2] == phases[2:4] and phases[0] != phases[1]


def test_every_run_and_every_evaluation_is_kept(finished):
    run_dir, said = finished
    found = results(run_dir)
    assert found["settings"] == [
        {RATE: rate, "num_epochs": epochs} for rate in (1e-4, 1e-2) for epochs in (1, 2)
    ]
    pairs = [(run["setting"], run["seed"]) for run in found["runs"]]
    assert sorted(pairs) == [(i, seed) for i in range(4) for seed in range(3)]
    for run in found["runs"]:
        returns = run["evaluations"]["eval/mean_reward"]
        assert run["steps"] == list(range(128, 769, 128)) and len(returns) == 6
        assert all(map(np.isfinite, returns)) and run["ending"] == "finished"
    assert "12 runs in" in said and "0 failed" in said


def test_every_file_of_a_sweep_is_in_the_document(finished):
    run_dir, _ = finished
    assert unnamed(run_dir, "A sweep") == set()


def test_the_table_is_of_the_last_evaluations(finished):
    """Against scipy; a larger learning rate is better here."""
    found = results(finished[0])
    last = np.zeros((4, 3))
    for run in found["runs"]:
        returns = run["evaluations"]["eval/mean_reward"]
        last[run["setting"], run["seed"]] = returns[-1]
    assert len(found["table"]) == 4
    for scores, row in zip(last, found["table"], strict=True):
        assert row["iqm"] == pytest.approx(stats.trim_mean(scores, 0.25))
        assert row["interval"][0] <= row["iqm"] <= row["interval"][1]
        wins = stats.mannwhitneyu(scores, last[0]).statistic
        assert row["improvement"] == pytest.approx(wins / 9)
        assert row["runs"] == 3
        assert f"{row['iqm']:.4g}" in finished[1]
    assert "nothing of chance" not in finished[1]
    assert found["table"][0]["improvement"] == 0.5
    assert found["table"][2]["improvement"] == 1.0


def members(path):
    config = experiment.load(path, [])
    found = settings.grid(GRID, {})
    return config, [
        cohorts.Member(i, seed, settings.apply(config, setting))
        for i, setting in enumerate(found)
        for seed in range(3)
    ]


def plain(tree):
    return [
        np.asarray(jax.random.key_data(x) if x.dtype.name.startswith("key") else x)
        for x in jax.tree.leaves(tree)
    ]


def test_a_run_begins_as_if_it_were_trained_alone(path):
    _, all_members = members(path)
    first = cohorts.group(all_members)[0]
    assert [member.setting for member in first] == [0, 0, 0, 2, 2, 2]
    whole = cohorts.begin(first)()
    for i in (1, 5):
        config = experiment.load(path, ["--seed", str(first[i].seed)])
        setting = {RATE: (1e-4, 1e-2)[i // 3], "num_epochs": 1}
        alone = training.start(settings.apply(config, setting))
        for a, b in zip(plain(alone.runs), plain(whole.runs), strict=True):
            np.testing.assert_array_equal(a[0], b[i])


def test_batches_fit_into_memory(path):
    """Equal ones, so that one program does for all."""
    _, all_members = members(path)
    group = cohorts.group(all_members)[0]
    size, needed = cohorts.largest_batch(group, 1e12)
    assert size == 6 and needed == cohorts.memory(group)
    size, less = cohorts.largest_batch(group, needed * 0.7)
    assert 1 < size < 6 and less <= needed * 0.7
    batches = cohorts.split(group, size)
    assert {len(batch) for batch in batches} == {size}
    assert {member for batch in batches for member in batch} == {*group}


def test_a_sweep_in_batches_says_the_same(path, finished, tmp_path):
    """The last batch is filled up, and no run is counted twice."""
    whole = results(finished[0])
    shutil.copytree(finished[0], tmp_path / "run")
    for batch in (tmp_path / "run" / "batches").iterdir():
        shutil.rmtree(batch)
    asked = json.loads((tmp_path / "run" / "sweep.json").read_text())
    asked["sizes"] = [4, 6]
    (tmp_path / "run" / "sweep.json").write_text(json.dumps(asked))
    done = called("sweep", path, "--run-dir", tmp_path / "run", "--resume")
    assert done.returncode == 0, done.stderr
    assert "batch 3 of 3" in done.stdout
    found = results(tmp_path / "run")
    assert len(found["runs"]) == 12
    for a, b in zip(whole["runs"], found["runs"], strict=True):
        assert (a["setting"], a["seed"]) == (b["setting"], b["seed"])
    for a, b in zip(whole["table"], found["table"], strict=True):
        assert a["iqm"] == pytest.approx(b["iqm"], abs=1e-3)


def test_killed_a_sweep_ends_the_same(path, finished, tmp_path):
    """In its second batch; the first one is not trained again."""
    broken = tmp_path / "broken"
    process = begin("sweep", path, "--run-dir", broken, *ASKED, environment=ALIKE)
    deadline = time.monotonic() + 180
    while not list(broken.glob("batches/002/metrics.jsonl")):
        assert time.monotonic() < deadline and process.poll() is None
        time.sleep(0.01)
    process.kill()
    process.communicate()
    assert (broken / "batches" / "001" / "scores.json").exists()
    again = called("sweep", path, "--run-dir", broken, "--resume")
    assert again.returncode == 0, again.stderr
    assert "batch 1 of" not in again.stdout
    assert results(broken) == results(finished[0])
    third = called("sweep", path, "--run-dir", broken, "--resume")
    assert "batch" not in third.stdout and "| runs |" in third.stdout


def test_killed_while_it_compiles_a_sweep_goes_on(path, finished, tmp_path):
    """With the memory that it was given, and as a sweep, whoever looks at it."""
    broken, largest = tmp_path / "broken", cohorts.largest_batch

    def killed(members, room):
        if members[0].config.num_epochs == 2:
            raise KeyboardInterrupt
        return largest(members, room)

    line = ("sweep", path, "--run-dir", broken)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(cohorts, "largest_batch", killed)
        assert called(*line, *ASKED, "--memory", 4000).returncode == 130
    listed = called("runs", broken).stdout
    again = f"python -m ppo_jax.sweep {broken}/experiment.py --run-dir {broken} --resum"
    assert again in listed and "unsaved" not in listed
    done = called(*line, "--resume")
    assert done.returncode == 0, done.stderr
    assert "  program 1: " not in done.stdout and "of 4,000 MiB" in done.stdout
    assert results(broken) == results(finished[0])


def test_names_of_a_grid_keep_their_values(path, tmp_path, monkeypatch):
    """Others are refused before anything is trained; an earlier version kept none."""

    def killed(members, room):
        raise KeyboardInterrupt

    monkeypatch.setattr(cohorts, "largest_batch", killed)
    named, run_dir = tmp_path / "named.py", tmp_path / "run"
    line = ("sweep", named, "--run-dir", run_dir)
    named.write_text(path.read_text() + "slow, fast = 1e-6, 1e-2\n")
    assert called(*line, "--grid", f"{RATE}=slow,fast").returncode == 130
    assert called(*line, "--resume").returncode == 130
    named.write_text(path.read_text() + "slow, fast = 5e-2, 1e-2\n")
    done = called(*line, "--resume")
    assert done.returncode == 2
    assert f"  setting 0: {RATE}: 1e-06 -> 0.05\n" in done.stderr
    asked = json.loads((run_dir / "sweep.json").read_text())
    del asked["values"]
    (run_dir / "sweep.json").write_text(json.dumps(asked))
    assert called(*line, "--resume").returncode == 130


def test_random_search_in_the_space_of_a_population(path, tmp_path):
    """Six draws, the same for both numbers of epochs."""
    searched = tmp_path / "searched.py"
    searched.write_text(
        path.read_text() + "from ppo_jax import PBT, LogUniform\n"
        f"space = {{'{RATE}': LogUniform(1e-4, 1e-2)}}\n"
        "config = dataclasses.replace(config, pbt=PBT(space))\n"
    )
    options = ("--random", 6, "--grid", "num_epochs=1,2", "--metric", "eval/q25_reward")
    run_dir = tmp_path / "run"
    done = called("sweep", searched, "--run-dir", run_dir, *options)
    assert done.returncode == 0, done.stderr
    assert "12 runs: 12 settings x 1 seeds, programs to compile: 2" in done.stdout
    found = results(run_dir)
    rates = [setting[RATE] for setting in found["settings"]]
    assert len(set(rates)) == 6 and rates[:6] == rates[6:]
    assert all(1e-4 <= rate <= 1e-2 for rate in rates)
    assert found["metric"] == "eval/q25_reward"
    assert_one_run_says_nothing_of_chance(done.stdout, found["table"])


def assert_one_run_says_nothing_of_chance(said, table):
    """No interval, nothing better than anything, and what to do about it."""
    lines = [line for line in said.splitlines() if line.startswith("| num_epochs=")]
    assert len(lines) == len(table) == 12
    for line, row in zip(lines, table, strict=True):
        assert line.split(" | ")[1:] == ["1", f"{row['iqm']:.4g}", "", "", " |"]
        assert row["interval"] is row["improvement_interval"] is None
        assert row["improvement"] is None
    assert "One run of a setting says nothing of chance" in said
    assert "--seeds 5" in said


def test_runs_that_fail_do_not_end_a_sweep(path, tmp_path):
    """A learning rate that breaks them all; the next batch is trained."""
    constant = "schedule=schedules.Constant()"
    text = f"optimizer=optimizers.Sgd(1e30, {constant}),optimizers.Adam({constant})"
    options = ("--grid", text, "--max-failures", 2, "--seeds", 6)
    done = called("sweep", path, "--run-dir", tmp_path / "run", *options)
    assert done.returncode == 0, done.stderr
    found = results(tmp_path / "run")
    endings = [run["ending"] for run in found["runs"]]
    assert endings == ["failed"] * 6 + ["finished"] * 6
    assert found["table"][1]["improvement"] == 1.0
    assert "12 runs in" in done.stdout and "6 failed" in done.stdout

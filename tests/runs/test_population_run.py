"""Populations as a user runs them: lineage, metrics, kills, evaluation."""

import itertools
import json
import shutil

import numpy as np
import pytest
from runs import (
    EXPERIMENT,
    assert_same,
    begin,
    called,
    command,
    restored,
    rows,
    wait_for_checkpoint,
)

POPULATION = (
    EXPERIMENT.format(memory="")
    + """
import dataclasses
from ppo_jax.envs.probes import Target
from ppo_jax import LogUniform, PBT, Uniform, pbt

config = dataclasses.replace(
    config,
    env=Target(),
    phase_updates=2,
    eval_phases=3,
    pbt=PBT(
        {
            "optimizer.learning_rate": LogUniform(1e-4, 1e-2),
            "terms.surrogate.clip_eps": Uniform(0.05, 0.3),
        },
        size=4,
        interval=4,
        selector=pbt.BinaryTournament(),
        readiness=pbt.Readiness(share=0.5),
    ),
)
"""
)
RATE = "optimizer.learning_rate"


def lineage(run_dir):
    lines = (run_dir / "lineage.jsonl").read_text().splitlines()
    return [json.loads(line) for line in lines]


def distance(fitness):
    """From the target, root mean square; its square has fewer digits than actions."""
    return np.sqrt(-fitness)


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    path = tmp_path_factory.mktemp("population") / "experiment.py"
    path.write_text(POPULATION)
    return path


@pytest.fixture(scope="module")
def finished(path):
    """A population that nothing disturbed."""
    run_dir = path.parent / "finished"
    done = called("train", path, "--run-dir", run_dir)
    assert done.returncode == 0, done.stderr
    return run_dir


def test_what_the_first_generation_compiles_is_told_with_it(finished):
    """After 4 updates, as the programs of a phase are with the first one."""
    lines = (finished / "metrics.jsonl").read_text().splitlines()
    compiled = [
        row["time/iterations"]
        for row in map(json.loads, lines)
        if row["time/compiling"] > 0
    ]
    assert compiled == [2, 4]


def test_every_generation_is_in_the_lineage_and_in_the_checkpoint(finished):
    """P12: at every multiple of the interval, and never at 0 updates."""
    lines, (update, population, meta) = lineage(finished), restored(finished)
    assert [line["update"] for line in lines] == [0, 4, 8, 12, 16, 20, 24]
    assert update == 24 and meta["lineage"] == lines
    assert lines[0]["parent"] == [0, 1, 2, 3] and lines[0]["fitness"] == [None] * 4
    for before, line in itertools.pairwise(lines):
        for member, (parent, copied) in enumerate(
            zip(line["parent"], line["copied"], strict=True)
        ):
            assert copied == (parent != member)
            assert not copied or line["fitness"][parent] > line["fitness"][member]
            for path, now in line["numbers"].items():
                assert (now[member] == before["numbers"][path][member]) or copied
    config = population.runs.learner.config
    for path, held in {
        RATE: config.optimizer.learning_rate,
        "terms.surrogate.clip_eps": config.terms[0].clip_eps,
    }.items():
        np.testing.assert_array_equal(held, np.float32(lines[-1]["numbers"][path]))
        assert len(set(lines[0]["numbers"][path])) == 4


def test_a_population_evolves_at_its_interval(path, finished, tmp_path):
    """PROP-0: pbt and its interval; a number that is searched is none to give."""
    run_dir = tmp_path / "run"
    options = ("--pbt.interval", 2, "--total-timesteps", 32 * 8)
    options += ("--optimizer.learning-rate", 0.5, "--gamma", 0.9)
    done = called("train", path, "--run-dir", run_dir, *options)
    assert done.returncode == 0, done.stderr
    assert f"{RATE}: is given, but each member draws its own" in done.stdout
    assert "gamma: " not in done.stdout
    for one, updates in ((finished, range(0, 25, 4)), (run_dir, range(0, 9, 2))):
        assert [line["update"] for line in lineage(one)] == [*updates]


def test_phases_that_do_not_divide_an_interval_end_with_it(path, tmp_path):
    """Generations, evaluations and what goes on are where they were."""
    run_dir, broken = tmp_path / "run", tmp_path / "broken"
    options = ("--pbt.interval", 5, "--phase-updates", 4, "--total-timesteps", 32 * 12)
    done = called("train", path, "--run-dir", run_dir, *options)
    assert done.returncode == 0, done.stderr
    assert [line["update"] for line in lineage(run_dir)] == [0, 5, 10]
    log = {row["step"] // 32: row for row in rows(run_dir)}
    assert [*log] == [3, 5, 8, 10, 12]
    assert [x for x in log if "eval/mean_reward" in log[x]] == [5, 8, 10, 12]
    shutil.copytree(run_dir, broken)
    shutil.rmtree(broken / "checkpoints" / "12")
    done = called("train", path, "--run-dir", broken, "--resume")
    assert "resuming after update 8" in done.stdout, done.stderr
    assert_same(run_dir, broken)


def test_a_generation_is_told_in_the_metrics(finished):
    """P3, P10: with every member's numbers, which are those of its next update."""
    lines = {line["update"]: line for line in lineage(finished)}
    log = {row["step"] // 32: row for row in rows(finished)}
    assert sorted(log) == list(range(2, 25, 2))
    for update, row in log.items():
        assert ("pbt/population_size" in row) == (update in lines)
    copies = 0
    for update in range(4, 25, 4):
        line, row = lines[update], log[update]
        copies += sum(line["copied"])
        fitness = np.array(line["fitness"])
        expected = {
            "population_size": 4,
            "ready_members": 4,
            "mean_performance": fitness.mean(),
            "std_performance": fitness.std(),
            "min_performance": fitness.min(),
            "max_performance": fitness.max(),
            "exploitation_count": copies,
            "exploration_count": copies,
            "failed_ready_checks": 0,
            "fallback_used": 0,
            "nonfinite_members": 0,
            "recovered_members": 0,
            "carries_cleared": sum(line["copied"]),
        }
        for name, value in expected.items():
            assert row[f"pbt/{name}"] == pytest.approx(value, abs=1e-6), name
        for member in range(4):
            assert row[f"pbt/parent/{member}"] == line["parent"][member]
            rate = line["numbers"][RATE][member]
            assert row[f"pbt/{RATE}/{member}"] == rate
        assert row["eval/mean_reward"] == pytest.approx(np.median(fitness))
        assert row["best/eval/mean_reward"] == pytest.approx(fitness.max())
    for update in range(4, 23, 4):
        in_force = np.float32(lines[update]["numbers"][RATE])
        done = (update + np.arange(2)) / 24
        median = np.median(in_force * np.mean(1 - done))
        assert log[update + 2]["train/learning_rate"] == pytest.approx(median, 1e-4)


@pytest.mark.slow
def test_killed_a_population_ends_the_same(path, tmp_path):
    """PROP-18.1: SIGKILL after some generations; lineage, log and state agree."""
    budget = ("--total-timesteps", 32 * 60, "--eval-phases", 1)
    whole, broken = tmp_path / "whole", tmp_path / "broken"
    assert command("train", path, "--run-dir", whole, *budget).returncode == 0
    process = begin("train", path, "--run-dir", broken, *budget)
    wait_for_checkpoint(process, broken, number=2)
    process.kill()
    output, _ = process.communicate()
    assert "finished" not in output
    again = command("train", path, "--run-dir", broken, "--resume")
    assert again.returncode == 0, again.stderr
    assert "resuming after update" in again.stdout
    assert_same(whole, broken)
    assert lineage(whole) == lineage(broken)
    assert any(sum(line["copied"]) for line in lineage(whole))


def test_lineage_is_cut_back_to_the_checkpoint(path, finished, tmp_path):
    """Generations after it happen again, the same way; half a line is dropped."""
    run_dir = shutil.copytree(finished, tmp_path / "run")
    shutil.rmtree(run_dir / "checkpoints" / "24")
    with (run_dir / "lineage.jsonl").open("a") as file:
        file.write('{"update": 28')
    done = called("train", path, "--run-dir", run_dir, "--resume")
    assert done.returncode == 0, done.stderr
    assert lineage(run_dir) == lineage(finished)
    assert_same(finished, run_dir)


def test_the_fittest_member_is_evaluated_unless_another_is_asked_for(
    finished, tmp_path
):
    last = lineage(finished)[-1]
    fitness = last["fitness"]
    best = int(np.argmax(fitness))
    done = called("evaluate", finished, "--episodes", 4)
    assert done.returncode == 0, done.stderr
    assert f"member {best} of 4, the fittest" in done.stdout
    figures = [tmp_path / f"{member}.json" for member in (0, best)]
    for member, file in zip((0, best), figures, strict=True):
        options = ("--episodes", 4, "--json", file)
        done = called("evaluate", finished, "--member", member, *options)
        assert done.returncode == 0, done.stderr
    for member, file in zip((0, best), figures, strict=True):
        mean, parent = json.loads(file.read_text())["mean"], last["parent"][member]
        assert distance(mean) == pytest.approx(distance(fitness[parent]), abs=1e-7)
    wrong = called("evaluate", finished, "--member", 4)
    assert wrong.returncode == 2 and "expected 0 to 3, got 4" in wrong.stderr


def test_another_population_cannot_resume(path, finished):
    for option, said in (
        (("--pbt.size", 5), "pbt.size: 4 -> 5"),
        (("--pbt.space.ranges.0.1.high", 1.0), "pbt.space: "),
    ):
        done = called("train", path, "--run-dir", finished, "--resume", *option)
        assert done.returncode == 2
        assert said in done.stderr and "Traceback" not in done.stderr


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--pbt.size", 1], "PBT.size"),
        (["--pbt.fitness.metric", "eval/mean_rewards"], "'eval/mean_reward'"),
        (
            ["--pbt.space.ranges.1.0", "terms.surrogate.clip"],
            "'terms.surrogate.clip_eps'",
        ),
        (["--pbt.space.ranges.1.1.low", -1.0], "Surrogate.clip_eps"),
    ],
)
def test_impossible_populations_are_said(path, tmp_path, options, said):
    done = called("train", path, "--run-dir", tmp_path / "run", *options)
    assert done.returncode == 2
    assert said in done.stderr and "Traceback" not in done.stderr

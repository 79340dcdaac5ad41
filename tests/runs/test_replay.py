"""Replays of a member's schedule: exactly its ancestry's numbers, by one agent."""

import json
import shutil

import numpy as np
import pytest
from reported import unnamed
from runs import EXPERIMENT, assert_same, called, leaves, rows

from ppo_jax.host.run_dir import lineage

POPULATION = (
    EXPERIMENT.format(memory="")
    + """
import dataclasses
from ppo_jax import LogUniform, PBT, Uniform, optimizers, pbt, schedules, terms
from ppo_jax.envs.probes import Target

space = {
    "optimizer.learning_rate": LogUniform(1e-4, 1e-2),
    "terms.surrogate.clip_eps": Uniform(0.05, 0.3),
}
config = dataclasses.replace(
    config,
    env=Target(),
    network=dataclasses.replace(config.network, shared=True),
    terms=(terms.Surrogate(),),
    optimizer=optimizers.Adam(schedule=schedules.Constant()),
    pbt=PBT(space, size=2, interval=2, selector=pbt.BinaryTournament()),
)
"""
)
RATE, CLIP = "optimizer.learning_rate", "terms.surrogate.clip_eps"


@pytest.fixture(scope="module")
def source(tmp_path_factory):
    """A population of four members, in phases of two updates and one, by options."""
    home = tmp_path_factory.mktemp("replay")
    (home / "experiment.py").write_text(POPULATION)
    options = ("--pbt.size", 4, "--pbt.interval", 3, "--phase-updates", 2, "--seed", 3)
    run_dir = home / "run"
    done = called("train", home / "experiment.py", "--run-dir", run_dir, *options)
    assert done.returncode == 0, done.stderr
    return run_dir


@pytest.fixture(scope="module")
def replayed(source):
    done = called("replay", source)
    assert done.returncode == 0, done.stderr
    return source / "replay", done.stdout


def test_every_file_of_a_replay_is_in_the_document(source, replayed):
    run_dir, _ = replayed
    assert unnamed(run_dir, "A run") == unnamed(source, "A run") == set()


def ancestry(source, member=None):
    """Who a member was, by default the best, from the end to the beginning, by hand."""
    text = (source / "lineage.jsonl").read_text()
    lines = [json.loads(line) for line in text.splitlines()]
    fitness = [-np.inf if x is None else x for x in lines[-1]["fitness"]]
    last = member = int(np.argmax(fitness)) if member is None else member
    chain = []
    for line in reversed(lines):
        numbers = (line["numbers"][RATE][member], line["numbers"][CLIP][member])
        chain.append((line["update"], *numbers))
        member = line["parent"][member]
    return last, chain[::-1]


def assert_in_force(chain, found):
    """Rows say the numbers of the updates at which they were."""
    for row in found:
        before = row["step"] // 32 - 1
        _, rate, clip = [each for each in chain if each[0] <= before][-1]
        assert row["train/learning_rate"] == pytest.approx(rate, rel=1e-6)
        assert row["train/clip_range"] == pytest.approx(clip, rel=1e-6)


def test_the_numbers_are_those_of_the_ancestry(source, replayed):
    """In force at the updates at which they were, in metrics and in the checkpoint."""
    run_dir, said = replayed
    best, chain = ancestry(source)
    assert f"the schedule of member {best} of 4" in said
    assert [update for update, *_ in chain] == [*range(0, 25, 3)]
    assert len({rate for _, rate, _ in chain}) > 1
    found = rows(run_dir)
    assert [row["step"] // 32 % 3 for row in found] == [2, 0] * 8
    assert_in_force(chain, found)
    update, arrays = leaves(run_dir)
    assert update == 24
    _, rate, clip = chain[-2]
    scalars = [array for array in arrays if array.shape == (1,)]
    assert all(any(x == np.float32(number) for x in scalars) for number in (rate, clip))


def test_one_agent_is_left_that_can_be_evaluated(replayed):
    run_dir, _ = replayed
    assert not (run_dir / "lineage.jsonl").exists()
    row = rows(run_dir)[-1]
    assert not [name for name in row if name.startswith(("pbt/", "best/"))]
    done = called("evaluate", run_dir, "--episodes", 4)
    assert done.returncode == 0, done.stderr
    assert "member" not in done.stdout


def test_a_replay_goes_on(source, replayed, tmp_path):
    broken = shutil.copytree(replayed[0], tmp_path / "broken")
    shutil.rmtree(broken / "checkpoints" / "24")
    done = called("replay", source, "--to", broken, "--resume")
    assert done.returncode == 0, done.stderr
    assert "resuming after update" in done.stdout
    assert_same(replayed[0], broken)


def test_a_replay_that_was_stopped_goes_on_with_another_bound(
    source, replayed, tmp_path
):
    """It is kept: so long may it take, however often it goes on."""
    known = ("replay", source, "--to", tmp_path / "bounded")
    stopped = called(*known, "--max-seconds", 1e-3)
    assert stopped.returncode == 0 and "which is max_seconds" in stopped.stdout
    assert len(rows(known[-1])) < len(rows(replayed[0]))
    for bound in (("--max_seconds=600", "--stop-at", "None"), ()):
        done = called(*known, "--resume", *bound)
        assert done.returncode == 0, done.stderr
        assert_same(replayed[0], known[-1])
        fields = json.loads((known[-1] / "config.json").read_text())
        assert fields["max_seconds"]["value"] == "600.0"
        assert (known[-1] / "schedule.json").exists()


def test_a_replay_goes_on_with_its_schedule_or_not_at_all(replayed, tmp_path):
    """Not as `train` would go on, without; but another run may take its place."""
    broken = shutil.copytree(replayed[0], tmp_path / "broken")
    (broken / "ending.json").unlink()
    rows = (broken / "metrics.jsonl").read_text().splitlines(True)
    (broken / "metrics.jsonl").write_text("".join(rows[:-1]))
    again = f"python -m ppo_jax.replay {broken} --to {broken} --resume"
    assert called("report", broken).returncode == 0
    assert again in (broken / "report.html").read_text()
    assert again in called("runs", broken).stdout
    known = ("train", broken / "experiment.py", "--run-dir", broken)
    done = called(*known, "--resume")
    assert done.returncode == 2 and f"with its schedule: {again}" in done.stderr
    shutil.rmtree(broken / "checkpoints")
    (broken / "metrics.jsonl").unlink()
    trained = called(*known, "--total-timesteps", 64, "--phase-updates", 2)
    assert trained.returncode == 0 and not (broken / "schedule.json").exists()


def test_another_member_with_another_seed_in_other_phases(source, tmp_path):
    """Which are shorter than wished: numbers change between two of them."""
    to, options = tmp_path / "other", ("--seed", 7, "--phase-updates", 50)
    done = called("replay", source, "--member", 1, "--to", to, *options)
    assert done.returncode == 0, done.stderr
    lines = map(json.loads, (source / "lineage.jsonl").read_text().splitlines())
    schedule = json.loads((to / "schedule.json").read_text())
    expected = lineage.schedule([*lines], 1)
    assert schedule == [[update, numbers] for update, numbers in expected]
    assert json.loads((to / "config.json").read_text())["seed"]["value"] == "7"
    found = rows(to)
    assert [row["step"] for row in found] == [*range(96, 769, 96)]
    assert_in_force(ancestry(source, member=1)[1], found)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["nowhere"], "nowhere: no run"),
        (["{source}", "--to", "{replay}"], "holds a run already"),
        (["{replay}"], "is no run of a population"),
        (["{source}", "--to", "{new}", "--member", "4"], "expected 0 to 3, got 4"),
        (["{source}", "--to", "{source}/config.json/x"], "x: no run can be kept"),
        (["{source}", "--to", "{new}", "--resume"], "no run"),
        (
            ["{source}", "--to", "{replay}", "--resume", "--seed", "2"],
            "give --seed 2 to",
        ),
        (
            ["{source}", "--to", "{replay}", "--resume", "--member", "1"],
            "give --member to",
        ),
        (["{source}", "--to", "{new}", "--gama", "1"], "--gamma"),
        (
            ["{source}", "--to", "{new}", "--optimizer.learning-rate", "0.5"],
            "optimizer.learning_rate: follows the member's schedule, so it can be no",
        ),
        (
            ["{source}", "--to", "{new}", "--stop-at", "eval/mean_rewar", "1"],
            "Config.stop_at: no metric is called 'eval/mean_rewar'; the closest is",
        ),
    ],
)
def test_bad_input_is_said(source, replayed, tmp_path, options, said):
    known = {"source": source, "replay": replayed[0], "new": tmp_path / "new"}
    done = called("replay", *(option.format(**known) for option in options))
    assert done.returncode == 2
    assert said in done.stdout + done.stderr and "Traceback" not in done.stderr
    assert not known["new"].exists()

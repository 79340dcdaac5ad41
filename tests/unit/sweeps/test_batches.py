"""Batches of a sweep: how large they are, and which are trained."""

import json

import pytest
from brief import experiment

from ppo_jax.envs.probes import IdenticalRewards
from ppo_jax.host.loop.training import Ended
from ppo_jax.host.metrics.rows import EVALUATIONS
from ppo_jax.host.process.console import Console
from ppo_jax.sweeps import batches, capacity, cohorts
from ppo_jax.sweeps.cohorts import Member

METRIC, HINT = EVALUATIONS[0], "go on with: this"
MIB = 1024 * 1024


CONFIG = experiment(IdenticalRewards())


def group(first, count):
    return [Member(first, seed, CONFIG) for seed in range(count)]


GROUPS = [group(0, 5), group(1, 2)]


def sizes(groups, known, memory, remember=lambda known: None):
    return batches.sizes(groups, known, memory, print, remember)


@pytest.fixture
def ten_each(monkeypatch):
    """A device of 100 MiB, of which every run needs ten."""
    monkeypatch.setattr(capacity, "of_device", lambda: 100 * MIB)
    monkeypatch.setattr(cohorts, "memory", lambda members: 10 * MIB * len(members))


@pytest.mark.usefixtures("ten_each")
@pytest.mark.parametrize(
    ("memory", "expected"), [(50.0, [5, 2]), (49.0, [3, 2]), (15, [1, 1]), (1, [1, 1])]
)
def test_as_many_at_once_as_one_allows(memory, expected):
    assert sizes(GROUPS, [], memory) == expected


@pytest.mark.usefixtures("ten_each")
def test_with_a_limit_nobody_asks_the_device(monkeypatch):
    monkeypatch.setattr(capacity, "of_device", None)
    assert sizes(GROUPS, [], 50.0) == [5, 2]


@pytest.mark.usefixtures("ten_each")
def test_a_fifth_of_the_device_is_left_free(capsys):
    """80 of 100 MiB; what is decided is said."""
    assert sizes([group(0, 8), group(1, 9)], [], None) == [8, 5]
    assert capsys.readouterr().out.splitlines() == [
        "  program 1: 8 runs, 8 at once in 80.0 of 80 MiB",
        "  program 2: 9 runs, 5 at once in 50.0 of 80 MiB",
    ]


@pytest.mark.usefixtures("ten_each")
def test_sizes_that_were_decided_stay(capsys):
    """A batch that is trained half is of the size that it was of."""
    assert sizes(GROUPS, [2], 100.0) == [2, 2]
    assert "program 1" not in capsys.readouterr().out
    assert sizes(GROUPS, [3, 1], 100.0) == [3, 1]


@pytest.mark.usefixtures("ten_each")
def test_what_is_decided_is_remembered_before_the_next_program_is_compiled(monkeypatch):
    """A sweep that is killed there has begun, and goes on with the program after."""
    memory, remembered = cohorts.memory, []

    def killed(members):
        if members[0].setting == 1:
            raise KeyboardInterrupt
        return memory(members)

    monkeypatch.setattr(cohorts, "memory", killed)
    with pytest.raises(KeyboardInterrupt):
        sizes(GROUPS, [], None, lambda known: remembered.append([*known]))
    assert remembered == [[], [5]]


class Trainer:
    """Trains in no time: the score of a run is its seed."""

    def __init__(self, **endings):
        self.endings, self.seen = endings, []

    def __call__(self, members, run_dir, hint, console):
        self.seen.append((run_dir.name, [(x.setting, x.seed) for x in members]))
        row = {"step": 8, METRIC: 0.0}
        for name in EVALUATIONS:
            alone = {name: members[0].seed} if len(members) == 1 else {}
            each = {f"each/{name}/{i}": x.seed for i, x in enumerate(members)}
            row |= each | alone
        run_dir.mkdir(parents=True, exist_ok=True)
        (run_dir / "metrics.jsonl").write_text(json.dumps(row) + "\n")
        ending = self.endings.get(f"batch_{run_dir.name}", "finished")
        return Ended(ending, 1, None, None, {})

    @staticmethod
    def each(members, ended):
        return [ended.ending] * len(members)


@pytest.fixture
def trained(monkeypatch, tmp_path):
    """What the runs of all batches scored, by a trainer."""

    def train(trainer):
        monkeypatch.setattr(cohorts, "train", trainer)
        monkeypatch.setattr(cohorts, "endings", trainer.each)
        split = batches.split(GROUPS, [3, 2], tmp_path)
        for batch in batches.train(split, HINT, Console):
            yield [(x["setting"], x["seed"], x["ending"]) for x in batch]

    return train


def test_batches_are_trained_one_after_the_other(trained, capsys):
    """The last of a program is filled up, and no run is told twice."""
    trainer = Trainer(batch_002="failed")
    assert [*trained(trainer)] == [
        [(0, 0, "finished"), (0, 1, "finished"), (0, 2, "finished")],
        [(0, 3, "failed"), (0, 4, "failed")],
        [(1, 0, "finished"), (1, 1, "finished")],
    ]
    assert trainer.seen == [
        ("001", [(0, 0), (0, 1), (0, 2)]),
        ("002", [(0, 3), (0, 4), (0, 4)]),
        ("003", [(1, 0), (1, 1)]),
    ]
    assert capsys.readouterr().out.splitlines() == [
        "batch 1 of 3, 3 runs",
        "batch 2 of 3, 2 runs, the last one 2 times to fill it",
        "batch 3 of 3, 2 runs",
    ]


def test_an_interrupted_batch_is_trained_again_and_no_other(trained, capsys):
    """What came before is yielded first, and again from what was kept."""
    interrupted = trained(Trainer(batch_002="interrupted"))
    before = next(interrupted)
    with pytest.raises(KeyboardInterrupt):
        next(interrupted)
    assert capsys.readouterr().out.splitlines()[-1] == HINT
    trainer = Trainer()
    again = [*trained(trainer)]
    assert again[0] == before and len(again) == 3
    assert [name for name, _ in trainer.seen] == ["002", "003"]
    assert "batch 1" not in capsys.readouterr().out

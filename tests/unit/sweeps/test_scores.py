"""What the runs of a sweep scored, by hand and against scipy."""

import json

import numpy as np
import pytest
from scipy import stats

from ppo_jax.host.metrics.rows import EVALUATIONS
from ppo_jax.sweeps import scores
from ppo_jax.sweeps.cohorts import Member

METRIC = EVALUATIONS[0]
MEMBERS = [Member(0, 3, None), Member(1, 4, None)]


def written(run_dir, *rows):
    text = "".join(json.dumps(row) + "\n" for row in rows)
    (run_dir / "metrics.jsonl").write_text(text)


def row(step, *values):
    """A row in which every evaluation of member i is value i."""
    return {"step": step, METRIC: 0.0} | {
        f"each/{name}/{i}": value
        for name in EVALUATIONS
        for i, value in enumerate(values)
    }


def score(setting, *values, metric=METRIC):
    return {"setting": setting, "evaluations": {metric: list(values)}}


def test_members_of_a_batch_are_told_apart(tmp_path):
    """A member that fills up the batch is told once; other rows are no evaluations."""
    written(tmp_path, row(10, 1.0, 2.0, 2.0), {"step": 20}, row(30, 5.0, None, None))
    found = scores.of_batch(tmp_path, [*MEMBERS, MEMBERS[1]], ["finished"] * 3)
    assert [(each["setting"], each["seed"]) for each in found] == [(0, 3), (1, 4)]
    assert [each["evaluations"][METRIC] for each in found] == [[1.0, 5.0], [2.0, None]]
    for each in found:
        assert each["steps"] == [10, 30] and each["ending"] == "finished"
        assert each["evaluations"].keys() == {*EVALUATIONS}


def test_a_single_run_has_metrics_of_its_own(tmp_path):
    written(tmp_path, {"step": 10} | dict.fromkeys(EVALUATIONS, 7.0))
    (found,) = scores.of_batch(tmp_path, MEMBERS[:1], ["failed"])
    assert found["evaluations"][METRIC] == [7.0] and found["ending"] == "failed"


def test_scores_that_are_damaged_are_none(tmp_path):
    """Cut anywhere, other JSON, or those of other members."""
    path = tmp_path / scores.BATCH
    assert scores.kept(tmp_path, MEMBERS) is None
    written(tmp_path, row(10, 1.0, 2.0), row(20, 3.0, None))
    whole = scores.keep(tmp_path, [*MEMBERS, MEMBERS[1]], ["finished"] * 3)
    text = path.read_bytes()
    assert scores.kept(tmp_path, [*MEMBERS, MEMBERS[1]]) == whole
    assert scores.kept(tmp_path, MEMBERS[:1]) is None
    without = [{k: v for k, v in whole[0].items() if k != name} for name in whole[0]]
    empty = whole[0] | {"evaluations": {name: [] for name in EVALUATIONS}}
    wrong = [json.dumps([each, whole[1]]).encode() for each in (*without, empty)]
    other = [b"[1]", b"{}", b"null", b"[]", b"\xff", text.replace(b"3.0", b'"x"')]
    for damaged in (*(text[:end] for end in range(0, len(text), 7)), *wrong, *other):
        path.write_bytes(damaged)
        assert scores.kept(tmp_path, MEMBERS) is None


def test_settings_are_compared_by_their_last_values():
    """The mean of the middle half, and how often one is better than the first."""
    first, second = np.arange(8.0), np.array([0.5, 9.0, 3.0, 3.0, 6.5, 7.5, -1.0, 4.0])
    runs = [score(0, 99.0, x) for x in first] + [score(1, x) for x in second]
    a, b = scores.table(runs, [{"gamma": 0.9}, {"gamma": 0.5}], METRIC)
    assert (a["setting"], b["setting"]) == ({"gamma": 0.9}, {"gamma": 0.5})
    assert a["runs"] == b["runs"] == 8
    for said, values in ((a, first), (b, second)):
        assert said["iqm"] == pytest.approx(stats.trim_mean(values, 0.25))
        low, high = said["interval"]
        assert low < said["iqm"] < high
    u = stats.mannwhitneyu(second, first).statistic / 64
    assert b["improvement"] == pytest.approx(u)
    low, high = b["improvement_interval"]
    assert 0 <= low < u < high <= 1


def test_one_run_says_nothing_of_chance():
    (alone,) = scores.table([score(0, 3.0)], [{}], METRIC)
    assert alone["iqm"] == 3.0 and alone["runs"] == 1
    names = ("interval", "improvement", "improvement_interval")
    assert [alone[name] for name in names] == [None] * 3
    text = scores.markdown([alone])
    assert text.endswith(scores.ALONE) and "| 1 | 3 |" in text


@pytest.mark.parametrize("runs", [2, 4])
def test_few_runs_say_little_of_chance(runs):
    """An interval of two pairs is a certainty that they do not give."""
    found = scores.table(several(runs), [{}, {"gamma": 0.5}], METRIC)
    assert found[1]["improvement"] == 1.0
    assert scores.markdown(found).endswith(scores.FEW)


def several(runs):
    """Runs of two settings, each of the second one better than any of the first."""
    return [score(i, 10.0 * i + j) for i in (0, 1) for j in range(runs)]


def test_the_first_setting_is_not_compared_with_itself():
    found = scores.table(several(5), [{}, {"gamma": 0.5}], METRIC)
    *_, first, second = scores.markdown(found).splitlines()
    assert first.endswith(" |  |  |") and second.endswith("| 1.00 | 1 to 1 |")


def test_settings_without_runs_are_not_in_the_table():
    """The first that has any is what others are compared with."""
    runs = [score(1, x) for x in (1.0, 2.0)] + [score(2, x) for x in (5.0, 6.0)]
    found = scores.table(runs, [{"a": 0}, {"a": 1}, {"a": 2}], METRIC)
    assert [each["setting"]["a"] for each in found] == [1, 2]
    assert [each["improvement"] for each in found] == [0.5, 1.0]


@pytest.mark.parametrize("values", [(), (1.0, None)])
def test_a_run_without_a_last_value_is_the_worst(values):
    runs = [score(0, *values), score(0, 2.0), score(1, -(10.0**9)), score(1, 0.0)]
    first, other = scores.table(runs, [{}, {"gamma": 0.5}], METRIC)
    assert first["runs"] == 2 and other["improvement"] == 0.5


def test_a_run_that_failed_is_the_worst_whatever_it_scored():
    """Its last evaluation is of an agent that learned nothing any more."""
    broken = score(0, 99.0) | {"ending": "failed"}
    runs = [broken, score(0, 2.0), score(1, 0.0), score(1, 3.0)]
    _, other = scores.table(runs, [{}, {"gamma": 0.5}], METRIC)
    assert other["improvement"] == 0.75


def test_the_table_is_text():
    runs = [score(i, x) for i in (0, 1) for x in (1.23456789, 2.0, 3.0, 4.0, 5)]
    found = scores.table(runs, [{}, {"gamma": 0.5}], METRIC)
    lines = scores.markdown(found).splitlines()
    assert lines[0] == f"| {' | '.join(scores.HEADER)} |"
    assert len(lines) == 4 and all(line.count("|") == 7 for line in lines)
    assert "0.50" in lines[3] and " to " in lines[3]

"""A log is read as it grows: each line once, in little memory, whatever is in it."""

import json
import os

import pytest
from shelf import log, row

from ppo_jax.monitoring import tail as tails
from ppo_jax.monitoring.tail import Tail

SCORE = "eval/mean_reward"


@pytest.fixture
def tail(tmp_path):
    return Tail(tmp_path / "metrics.jsonl")


def steps(tail, name="rollout/ep_rew_mean"):
    return [step for step, _ in tail.curves[name]]


def test_a_log_is_read_on_from_where_it_was_left(tail, tmp_path, monkeypatch):
    log(tmp_path, [row(10, 1.0), row(20)])
    tail.read()
    assert steps(tail) == [10, 20] and steps(tail, SCORE) == [10]
    taken, take = [], json.loads
    monkeypatch.setattr(tails.json, "loads", lambda x: taken.append(x) or take(x))
    log(tmp_path, [row(30, 3.0), row(40, 2.0)])
    tail.read()
    tail.read()
    assert len(taken) == 2
    assert steps(tail) == [10, 20, 30, 40] and tail.step == 40
    assert (tail.score, tail.best) == (2.0, 3.0)


def test_a_line_that_is_being_written_is_read_once_it_is_whole(tail, tmp_path):
    text = json.dumps(row(10)) + "\n"
    path = tmp_path / "metrics.jsonl"
    for end in (1, len(text) // 2, len(text) - 1):
        path.write_text(text[:end])
        tail.read()
        assert steps(tail) == [] and tail.odd == 0
    path.write_text(text)
    tail.read()
    assert steps(tail) == [10]


def test_a_log_that_was_cut_back_is_read_anew(tail, tmp_path):
    """As by a run that resumes: the file is another one, even if it is longer."""
    log(tmp_path, [row(10, 9.0), row(20)])
    tail.read()
    path = tmp_path / "metrics.jsonl"
    path.rename(tmp_path / "old")
    log(tmp_path, [row(5, 1.0), row(6), row(7)])
    tail.read()
    assert steps(tail) == [5, 6, 7] and tail.best == 1.0
    os.truncate(path, 0)
    log(tmp_path, [row(8)])
    tail.read()
    assert steps(tail) == [8]
    path.unlink()
    tail.read()
    assert steps(tail) == [] and tail.last == {}


@pytest.mark.parametrize(
    "line",
    [
        "{",
        "[]",
        "3",
        "null",
        "{}",
        '{"step": "10"}',
        '{"step": null}',
        '{"step": 1.5}',
        '{"step": true}',
        '{"step": NaN}',
        '{"step": ' + "9" * 5000 + "}",
        "[" * 20000,
        "\udcff",
        "x" * (tails.CHUNK + 5),
        "x" * (2 * tails.CHUNK),
    ],
    ids=lambda line: line[:12],
)
def test_a_line_that_is_no_row_is_counted_and_left_out(tail, tmp_path, line):
    log(tmp_path, [row(10)])
    path = tmp_path / "metrics.jsonl"
    with path.open("a", errors="surrogateescape") as file:
        file.write(line + "\n")
    log(tmp_path, [row(20)])
    tail.read()
    assert steps(tail) == [10, 20] and tail.odd == 1


def test_what_is_no_number_is_in_no_curve(tail, tmp_path):
    odd = {"x": "<script>", "y": [1], "z": True}
    log(tmp_path, [row(10, None, **{SCORE: None}, **odd), row(20, float("nan"))])
    log(tmp_path, [row(30, 10**400)])
    tail.read()
    assert steps(tail) == [10, 20] and steps(tail, SCORE) == []
    assert tail.best is None and not odd.keys() & tail.rows[0].keys()


def test_alerts_are_known_by_when_they_were_active(tail, tmp_path):
    """And how many are, at each time."""
    log(tmp_path, [row(10, **{"warn/x": 1.0, "warn/y": 2.0}), row(20, **{"warn/y": 1})])
    log(tmp_path, [row(30)])
    tail.read()
    assert tail.alerts == {"warn/x": 10, "warn/y": 20}
    assert list(tail.curves["warn/*"]) == [(10, 2), (20, 1), (30, 0)]


def test_of_a_population_the_fittest_member_counts(tail, tmp_path):
    fittest = {"pbt/fittest": 1.0, "best/eval/mean_reward": 7.0}
    log(tmp_path, [row(10, 3.0, **fittest)])
    tail.read()
    assert (tail.score, tail.best) == (7.0, 7.0)


def test_a_row_of_a_large_population_is_one(tail, tmp_path):
    names = ("mean", "cvar_5", "median", "q25", "q75", "std")
    each = {f"each/eval/{x}_reward/{i}": i / 7 for x in names for i in range(5000)}
    log(tmp_path, [row(10, 3.0, **each), row(20)])
    assert (tmp_path / "metrics.jsonl").stat().st_size > 2**20
    tail.read()
    assert steps(tail) == [10, 20] and tail.odd == 0


def test_the_speed_is_that_of_late(tail, tmp_path):
    """Compilation is before the first row; an evaluation counts."""
    assert tail.speed is None
    for number in range(40):
        seconds = 60 + number * (1 if number < 10 else 2)
        log(tmp_path, [row(10 * number, **{"time/time_elapsed": float(seconds)})])
    tail.read()
    assert tail.speed == pytest.approx(5.0)


def test_what_is_no_file_is_not_read(tail, tmp_path):
    """A link out of the run, a folder, or a pipe, at which a reader would wait."""
    log(tmp_path, [row(10)])
    (tmp_path / "metrics.jsonl").rename(tmp_path / "elsewhere")
    (tmp_path / "metrics.jsonl").symlink_to(tmp_path / "elsewhere")
    tail.read()
    assert steps(tail) == []
    (tmp_path / "metrics.jsonl").unlink()
    os.mkfifo(tmp_path / "metrics.jsonl")
    tail.read()
    assert steps(tail) == []
    (tmp_path / "metrics.jsonl").unlink()
    (tmp_path / "metrics.jsonl").mkdir()
    tail.read()
    assert steps(tail) == []

"""Rows as lines and as events, each step once."""

import json
import math
import os
import time
from contextlib import closing
from unittest.mock import Mock

import pytest
from runs import event_steps, event_values, rows
from tensorboardX.proto.layout_pb2 import Layout

from ppo_jax.host.run_dir import logger
from ppo_jax.host.run_dir.logger import Logger
from ppo_jax.host.run_dir.recording import Folder
from ppo_jax.host.run_dir.script import ExperimentError


def log(run_dir, steps, first_step=0, names=None, **metrics):
    logger = Logger(run_dir, first_step, names or {}, (), time.monotonic())
    for step in steps:
        logger.write(step, {"train/loss": float(step)} | metrics)
    logger.close()


def test_a_row_is_a_line_and_an_event(tmp_path):
    log(tmp_path, [10, 20], x=1)
    assert rows(tmp_path) == [
        {"step": step, "train/loss": step, "x": 1.0} for step in (10, 20)
    ]
    assert event_steps(tmp_path) == [10, 20]


def test_tensorboard_is_told_once_what_is_drawn_together(tmp_path):
    """With the first row, evaluations included, which come later; also on resume."""
    log(tmp_path, [10, 20], **{"time/fps": 1.0})
    log(tmp_path, [30], first_step=20)
    (told,) = (
        value.tensor.string_val[0]
        for _, _, value in event_values(tmp_path)
        if value.tag == "custom_scalars__config__"
    )
    groups = {
        group.title: {chart.title: [*chart.multiline.tag] for chart in group.chart}
        for group in Layout.FromString(told).category
    }
    assert groups["Evaluation and time"]["steps / s"] == ["^time/fps$"]
    assert "^eval/mean_reward$" in groups["Evaluation and time"]["reward"]


def test_what_is_not_finite_is_null(tmp_path):
    """JSON does not know it, and every other number is there."""
    log(tmp_path, [1], nan=math.nan, inf=-math.inf)
    text = (tmp_path / "metrics.jsonl").read_text()
    row = json.loads(text, parse_constant=lambda name: pytest.fail(name))
    assert row["nan"] is row["inf"] is None and row["train/loss"] == 1.0
    assert [*row] == ["step", *sorted(row.keys() - {"step"})]


def test_a_run_that_resumes_is_cut_back_to_where_it_does(tmp_path):
    """Lines and events, a line that was cut off among them; then it goes on."""
    log(tmp_path, [10, 20, 30])
    with (tmp_path / "metrics.jsonl").open("a") as file:
        file.write('{"step": 40, "tra')
    (events,) = tmp_path.glob("events.out.tfevents.*")
    events.rename(tmp_path / "events.out.tfevents.1.earlier")
    log(tmp_path, [30, 40], first_step=20, x=1.0)
    assert [(row["step"], row.get("x")) for row in rows(tmp_path)] == [
        *[(10, None), (20, None), (30, 1.0), (40, 1.0)]
    ]
    assert event_steps(tmp_path) == [10, 20, 30, 40]


def test_a_power_cut_takes_no_row_before_a_checkpoint(tmp_path, monkeypatch):
    """Which it would, of what the disk was not asked to keep."""
    kept, asked = Folder(tmp_path), []

    def identity(file):
        return file.st_ino, file.st_size

    def save(*_):
        assert asked[-1] == identity((tmp_path / "metrics.jsonl").stat())

    monkeypatch.setattr(
        os, "fsync", lambda file: asked.append(identity(os.fstat(file)))
    )
    kept._checkpoints = Mock(save=Mock(side_effect=save))
    kept.rows = Logger(tmp_path, 0, {}, (), time.monotonic())
    for step in (10, 20):
        kept.rows.write(step, {"train/loss": 1.0})
        kept.save(step, None, 0.0, {})
    kept.rows.close()
    assert kept._checkpoints.save.call_count == 2


def test_the_clock_goes_on_where_it_stopped(tmp_path):
    """What was between two lives of a run took no time."""
    row = {"step": 10, "time/time_elapsed": 5000.0}
    (tmp_path / "metrics.jsonl").write_text(json.dumps(row) + "\n")
    log(tmp_path, [20], first_step=10)
    before, after = (tmp_path / "metrics.jsonl").read_text().splitlines()
    assert json.loads(before) == row
    assert 5000.0 <= json.loads(after)["time/time_elapsed"] < 5060.0


def test_a_clock_that_is_set_back_is_none_of_a_run(tmp_path, monkeypatch):
    """Time goes on, events are on disk at once, and each has a time after the last."""
    monkeypatch.setattr(logger, "FLUSH_SECONDS", 0)
    log, now = Logger(tmp_path, 0, {}, (), time.monotonic()), time.time()
    for step, clock in ((10, now), (20, now - 3600.0)):
        monkeypatch.setattr(time, "time", lambda clock=clock: clock)
        log.write(step, {"x": 1.0})
        assert event_steps(tmp_path)[-1] == step
    log.close()
    first, last = (row["time/time_elapsed"] for row in log.read())
    assert 0.0 <= first <= last < 60.0
    times = [when for step, when, _ in event_values(tmp_path) if step]
    assert times == sorted(times) and times[0] == pytest.approx(now, abs=60.0)


def test_former_names_are_written_as_they_are_now(tmp_path):
    log(tmp_path, [10], **{"pbt/terms.2.coef/0": 0.5})
    log(tmp_path, [], first_step=10, names={"terms.2": "terms.entropy"})
    assert rows(tmp_path)[0]["pbt/terms.entropy.coef/0"] == 0.5


@pytest.mark.parametrize(
    ("line", "said"),
    [
        (b"\0\0\0\0", "line 3 is no JSON"),
        (b"\xff", "line 3 is no JSON"),
        (b'{"x": 1.0}', "line 3: step: expected a whole number, got None"),
        (b'{"step": 30, "x": "y"}', "line 3: x: expected a number, got 'y'"),
    ],
)
def test_a_line_that_is_no_row_matters_before_a_checkpoint_alone(tmp_path, line, said):
    """As a power cut may leave it, with others after it."""
    path = tmp_path / "metrics.jsonl"
    log(tmp_path, [10, 20])
    text = path.read_bytes()
    damaged = text + line + b"\n" + b'{"step": 40}\n'
    path.write_bytes(damaged)
    with pytest.raises(ExperimentError, match=f"metrics.jsonl: {said}"):
        log(tmp_path, [], first_step=30)
    assert path.read_bytes() == damaged
    for step in (20, 10):
        path.write_bytes(damaged)
        log(tmp_path, [], first_step=step)
        assert [row["step"] for row in rows(tmp_path)] == [*range(10, step + 1, 10)]


@pytest.mark.parametrize("time", ["", ', "time/time_elapsed": null'])
def test_a_row_may_lack_its_time(tmp_path, time):
    (tmp_path / "metrics.jsonl").write_text(f'{{"step": 10, "x": 1.0{time}}}\n')
    log(tmp_path, [20], first_step=10)
    assert event_steps(tmp_path) == [10, 20]


def gone_on(run_dir, step):
    with closing(Logger(run_dir, step, {}, (), time.monotonic())) as logger:
        logger.tell_lost(step)


@pytest.mark.parametrize(("lines", "last"), [(2, "1,000"), (0, "0")])
def test_rows_that_are_lost_are_said(tmp_path, capsys, lines, last):
    """A run that goes on from its last row is not warned."""
    log(tmp_path, [500, 1000])
    gone_on(tmp_path, 1000)
    assert capsys.readouterr().err == ""
    path = tmp_path / "metrics.jsonl"
    path.write_text("".join(path.read_text().splitlines(True)[:lines]))
    gone_on(tmp_path, 1500)
    said = f"{path}: ends at step {last}, but the checkpoint is of step 1,500; the rows"
    assert said in capsys.readouterr().err

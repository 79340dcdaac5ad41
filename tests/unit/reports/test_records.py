"""Runs as they are read, whole and damaged."""

import json
import math
from pathlib import Path

import numpy as np
import pytest
from reported import generations, row, written

from ppo_jax.errors import UserError
from ppo_jax.reports import records

STORED = Path(__file__).parents[2] / "runs" / "stored"
NUMBERS = {"gamma": np.array([0.5, 0.75])}


def test_a_run_of_a_version_before_has_the_names_of_now():
    """Numbers of terms had an index."""
    run = records.read(STORED / "population")
    assert run.members == 4 and len(run.generations) == 5 and run.notes == []
    assert "terms.entropy.coef" in run.generations[0]["numbers"]
    assert "pbt/terms.entropy.coef/0" in run.names
    assert run.field("terms.entropy.type") == "Entropy"
    assert run.count("num_envs") == 4 and run.count("gamma") is None


def test_a_series_is_where_it_was_logged():
    rows = [row(1, x=1.0), row(2), row(3, x=None), row(4, x="much"), row(5, x=2)]
    run = records.Record(STORED, rows, [], {}, {}, [])
    steps, values = run.series("x")
    assert steps.tolist() == [100, 300, 400, 500]
    np.testing.assert_array_equal(values, [1, math.nan, math.nan, 2])
    np.testing.assert_array_equal(run.column("x"), [1, math.nan, math.nan, math.nan, 2])
    assert run.last("x") == 2 and math.isnan(run.last("y"))
    assert [x.tolist() for x in run.series("y")] == [[], []]


@pytest.mark.parametrize(
    "change",
    [
        {"parent": [0]},
        {"parent": [0, 2]},
        {"parent": "who"},
        {"numbers": {}},
        {"numbers": {"gamma": [0.5]}},
        {"numbers": {"gamma": [0.5, None]}},
        {"update": None},
    ],
    ids=str,
)
def test_a_lineage_that_cannot_be_costs_a_note(tmp_path, change):
    lines = generations(2, 3, NUMBERS)
    lines[2] |= change
    run = records.read(written(tmp_path, [row(1)], lines))
    assert run.generations == []
    (note,) = run.notes[:1]
    assert note.endswith("lineage.jsonl: line 3: no generation of these members")


@pytest.mark.parametrize("text", ["[]", "[[0]]", '[[0, {"gamma": "much"}]]', "{}"])
def test_a_schedule_that_cannot_be_costs_a_note(tmp_path, text):
    (written(tmp_path, [row(1)]) / "schedule.json").write_text(text)
    (note,) = records.read(tmp_path).notes
    assert "schedule.json: " in note


@pytest.mark.parametrize("field", [3, {}, {"kind": "number", "value": 3}], ids=str)
def test_a_description_with_what_is_no_field_is_told(tmp_path, field):
    written(tmp_path, [row(1)])
    (tmp_path / "config.json").write_text(json.dumps({"env.type": field}))
    found = records.read(tmp_path)
    (note,) = found.notes
    assert "config.json: env.type: expected a kind and a value" in note
    assert found.description == {}


def test_what_was_measured_later_is_found(tmp_path):
    """And not what tells of the run itself."""
    written(tmp_path, [row(1)])
    for name in ("figures", "overrides", "schedule", "list"):
        value = [] if name == "list" else {"mean": 1.0}
        (tmp_path / f"{name}.json").write_text(json.dumps(value))
    (tmp_path / "torn.json").write_text("{")
    run = records.read(tmp_path)
    assert run.measured == {"figures.json": {"mean": 1.0}}
    assert any("torn.json" in note for note in run.notes)


def test_a_run_that_has_just_begun_is_not_said_to_be_none(tmp_path):
    (tmp_path / "config.json").write_text("{}")
    with pytest.raises(UserError, match="the run has logged nothing yet"):
        records.read(tmp_path)
    with pytest.raises(UserError, match="no run to be found there"):
        records.read(tmp_path / "nowhere")


def test_a_row_that_does_not_know_when_it_was_is_named(tmp_path):
    written(tmp_path, [row(1), row(2) | {"step": "two"}])
    with pytest.raises(UserError, match="line 2: step: expected a number, got 'two'"):
        records.read(tmp_path)

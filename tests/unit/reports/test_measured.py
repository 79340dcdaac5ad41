"""Risk and robustness, of files that commands write."""

import json
import math

import pytest
from reported import row, said, written

from ppo_jax.reports import records
from ppo_jax.reports.measured import section

EVALUATED = dict.fromkeys(("mean", "std", "median", "q25", "q75", "cvar_5"), 2.5)
EVALUATED |= {"episodes": 8, "unfinished": 1, "deterministic": False, "checkpoint": 7}
ATTACKED = {
    "eps": [0.0, 0.1],
    "unit": "metres",
    "agents": {
        "runs/x": {
            "PGD": [{"mean": 4.0, "cvar_5": 3.0}, {"mean": 2.0}],
            "MAD": [{"mean": 4.0, "cvar_5": 3.0}, {"mean": 2.0}],
        }
    },
}


def found(path, **files):
    written(path, [row(1)])
    for name, value in files.items():
        (path / f"{name}.json").write_text(json.dumps(value))
    return section(records.read(path))


def test_what_was_measured_is_shown(tmp_path):
    later = EVALUATED | {"fields": "--env.first 250"}
    table, text, grid = found(
        tmp_path, figures=EVALUATED, later=later, robustness=ATTACKED
    ).parts
    assert said(text).endswith("robustness.json , ε in units of metres.")
    assert "figures.json 2.5 2.5 2.5 2.5 2.5 2.5 8 1 sampled as trained 7" in said(
        table
    )
    assert "sampled --env.first 250 7" in said(table)
    mean, tail = grid.charts
    assert mean.title == "runs/x: mean return" and mean.marks[0].y.tolist() == [4, 2]
    assert [mark.tone for mark in mean.marks] == ["one", "two gaps"]
    assert tail.marks[0].name == "PGD" and str(tail.marks[0].y[1]) == "nan"


@pytest.mark.parametrize("mean", [None, math.nan])
def test_what_was_not_finite_is_not_known(tmp_path, mean):
    (table,) = found(tmp_path, figures=EVALUATED | {"mean": mean}).parts
    assert "figures.json – 2.5 2.5 2.5 2.5 2.5 8 1 sampled as trained 7" in said(table)


@pytest.mark.parametrize(
    "other",
    [
        {"mean": 1.0},
        EVALUATED | {"mean": "2.5"},
        ATTACKED | {"eps": "much"},
        ATTACKED | {"eps": [0.0]},
        ATTACKED | {"agents": {"x": {"PGD": [3, 4]}}},
        {"agents": [], "eps": []},
    ],
    ids=str,
)
def test_another_file_is_not_of_these(tmp_path, other):
    assert found(tmp_path, other=other) is None

"""Rows as curves, by hand."""

import numpy as np
import pytest

from ppo_jax.host.run_dir.history import curves, of_member

ROWS = [
    {"step": 8, "x": 1.0, "time/fps": 3.0},
    {"step": 16, "x": None, "time/fps": 4.0, "eval/m": 2.0, "q25/eval/m": 1.5}
    | {f"each/eval/m/{i}": float(i) for i in range(11)}
    | {"pbt/gamma/1": 0.5, "pbt/gamma/0": None, "pbt/fittest": 1.0},
]


def test_a_curve_has_the_rows_that_say_it():
    """In the order of members, of which 10 comes after 9; null is NaN."""
    found = {name: (c.steps, c.values) for name, c in curves(ROWS).items()}
    expected = {
        "x": ([8, 16], [1.0, np.nan]),
        "time/fps": ([8, 16], [3.0, 4.0]),
        "eval/m": ([16], [[float(i)] for i in range(11)]),
        "q25/eval/m": ([16], [1.5]),
        "pbt/gamma": ([16], [[np.nan], [0.5]]),
        "pbt/fittest": ([16], [1.0]),
    }
    assert found.keys() == expected.keys()
    for name, pair in expected.items():
        for array, wanted in zip(found[name], pair, strict=True):
            np.testing.assert_array_equal(array, wanted)
    assert curves([]) == {}


def test_a_curve_that_there_is_not_is_said_beside_those_that_there_are():
    found = curves([{"step": 8, "eval/mean_reward": 1.0, "time/fps": 2.0}])
    said = "no metric is called 'train/loss'; there are: eval/mean_reward, time/fps"
    with pytest.raises(KeyError, match=said):
        found["train/loss"]
    assert "train/loss" not in found and found.get("train/loss") is None


def test_rows_of_a_member_are_those_of_a_single_run():
    assert of_member(ROWS, 10) == [
        {"step": 8, "time/fps": 3.0},
        {"step": 16, "time/fps": 4.0, "eval/m": 10.0},
    ]


def test_rows_of_a_copy_are_those_of_whom_it_goes_on_with():
    """A generation comes after the evaluation of its row; 1 is copied, then 2."""
    scores = [{f"each/x/{i}": 10.0 * t + i for i in range(3)} for t in range(4)]
    rows = [{"step": 8 * t} | each for t, each in enumerate(scores)]
    rows[1] |= {"pbt/parent/0": 1.0, "pbt/parent/1": 1.0, "pbt/parent/2": 2.0}
    rows[2] |= {"pbt/parent/0": 0.0, "pbt/parent/1": 2.0, "pbt/parent/2": 2.0}
    found = [[row["x"] for row in of_member(rows, i)] for i in range(3)]
    assert found == [[1, 11, 20, 30], [2, 12, 22, 31], [2, 12, 22, 32]]

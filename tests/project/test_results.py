"""Documents say what benchmarks kept, and they keep what they found."""

import copy
import json
import runpy
import sys
from pathlib import Path

import numpy as np
import pytest

ROOT = Path(__file__).parents[2]
BENCHMARKS = ROOT / "benchmarks"
DOCUMENTS = {
    "acting": "export.md",
    "compiled": "results.md",
    "environments": "environments.md",
    "learning": "results.md",
    "memories": "results.md",
    "walkforward": "trading.md",
    "trading": "trading.md",
    "warm_start": "results.md",
}
KEPT = {path.stem: path for path in sorted(BENCHMARKS.glob("results/*.json"))}


@pytest.fixture
def script(monkeypatch):
    """What the script of a name defines."""
    monkeypatch.syspath_prepend(BENCHMARKS)
    return lambda name: runpy.run_path(str(BENCHMARKS / f"{name}.py"))


@pytest.fixture
def printed(monkeypatch, capsys):
    """What a script prints if it is called with options."""

    def call(names, *options):
        monkeypatch.setattr(sys, "argv", ["script", *map(str, options)])
        names["main"]()
        return capsys.readouterr().out

    return call


def altered(tree):
    """All copies of a record that differ from it in a single leaf."""
    if isinstance(tree, dict | list):
        for key in tree if isinstance(tree, dict) else range(len(tree)):
            for leaf in altered(tree[key]):
                other = copy.copy(tree)
                other[key] = leaf
                yield other
    elif isinstance(tree, str):
        yield f"{tree}0"
    else:
        yield 1 if tree is None else tree + 1


def test_altered_records():
    assert list(altered({"a": [2, None], "b": "x"})) == [
        {"a": [3, None], "b": "x"},
        {"a": [2, 1], "b": "x"},
        {"a": [2, None], "b": "x0"},
    ]


def test_there_are_results():
    assert KEPT.keys() == DOCUMENTS.keys()


@pytest.mark.parametrize("name", KEPT)
def test_the_document_says_what_was_kept(name, script, printed):
    table = printed(script(name), "--table")
    assert f"\n\n{table}\n" in (ROOT / "docs" / DOCUMENTS[name]).read_text()


def test_the_document_says_what_tasks_came_to(script, printed):
    table = printed(script("tasks"), "--table")
    assert table.count("\n") > 2
    assert f"\n\n{table}" in (ROOT / "docs/results.md").read_text()


def test_a_table_of_tasks_by_hand(script):
    row = {"env": "brax/ant", "agent": "recurrent", "published": "it: 9", "seconds": 90}
    row |= {"steps": [50, 100], "returns": [[-1.0, 5.0], [0.0, 7.0]]}
    *_, line = script("tasks")["table"]([{"rows": [row]}])
    assert line == (
        "| brax/ant | recurrent | 2 | 100 | 2 | ▁█ | −0.5 | 6 | 6 | 5 to 7 | it: 9 |"
    )


@pytest.mark.parametrize("name", KEPT)
def test_the_table_shows_everything_that_was_kept(name, script):
    """Whatever is changed in the file, another document would be due."""
    table = script(name)["table"]
    record = json.loads(KEPT[name].read_text())
    others = ["\n".join(table(other)) for other in altered(record)]
    assert len(others) > 30
    assert "\n".join(table(record)) not in others


@pytest.mark.parametrize(
    ("steps", "expected"),
    [
        ([30, 10, 20], 20),
        ([40, 10, 30, 20], 25),
        ([np.inf, 10, 20], 20),
        ([np.inf, 10, np.inf], np.inf),
        ([np.inf, 10, 30, 20], 25),
        ([np.inf, 10, np.inf, 20], np.inf),
        ([np.inf, np.inf], np.inf),
    ],
)
def test_medians_by_hand(steps, expected, script):
    """A seed that never arrives is above all others."""
    median = script("learning")["median"]
    assert median(np.array(steps)) == expected
    np.testing.assert_array_equal(median(np.array([steps, steps])), [expected] * 2)


def test_a_table_by_hand(script):
    """Of three draws of three seeds two are the least with probability 7 / 27."""
    row = {
        "task": "Walk",
        "target": -2.5,
        "critic": "scalar",
        "steps_between": 1000,
        "steps": [4000, None, 2000],
    }
    record = {"settings": {"episodes": 3}, "machine": {"cores": 2}, "rows": [row]}
    assert list(script("learning")["table"](record))[-1] == (
        "| Walk | −2.5 | scalar | 4,000 | 2,000 to ∞ | 1,000 | 4 ∞ 2 |"
    )


def test_a_table_of_programs_by_hand(script):
    """Only populations have generations."""
    needed = {"making": 0.5, "training": 2048.0, "evaluation": 1.0}
    one = {"experiment": "walk", "h100": needed, "v4": None}
    other = {"experiment": "pbt", "h100": needed, "v4": needed | {"generation": 3.0}}
    record = {"settings": {}, "machine": {"cores": 2}, "rows": [one, other]}
    *_, first, second = script("compiled")["table"](record)
    assert first == "| walk | 0.5 2,048.0 1.0 | not compiled |"
    assert second == "| pbt | 0.5 2,048.0 1.0 | 0.5 2,048.0 1.0 3.0 |"


def test_a_table_of_agents_by_hand(script):
    """Of two seeds, all draws are twice the one, twice the other, or both."""
    names = script("walkforward")
    row = {name: [1.0, 1.0] for name in (*names["MEASURES"], names["EVEN"])}
    row |= {name: [-1.0, 2.0] for name in names["LUCK"]}
    row |= {"cost": 5.0, "deflated": 0.25}
    with_term = row | {"who": "with", "Sharpe": [3.0, 1.0]}
    rows = [with_term, row | {"who": "without"}]
    record = {"settings": {}, "machine": {}, "rows": rows}
    lines = list(names["table"](record))
    same, none = ["1 (1 to 1)"] * 4, ["0 (0 to 0)"] * 4
    for cells in (
        ["with", "5", same[0], "2 (1 to 3)", *same],
        ["5", none[0], "1 (0 to 2)", *none],
        ["without", "5", "−1 to 2", "−1 to 2", "0.250"],
    ):
        assert f"| {' | '.join(cells)} |" in lines


LINEAR = f"""
import dataclasses, runpy
from ppo_jax import networks

known = runpy.run_path({str(ROOT / "experiments" / "cartpole.py")!r})["config"]
network = networks.ActorCritic(networks.Mlp(hidden=()))
config = dataclasses.replace(known, network=network)
"""


@pytest.fixture
def short(script, monkeypatch, tmp_path):
    """The script on CartPole alone: a linear agent, two updates, two evaluations."""
    names = script("learning")
    (tmp_path / "experiments").mkdir()
    (tmp_path / "experiments" / "cartpole.py").write_text(LINEAR)
    home = tmp_path / "benchmarks"
    monkeypatch.setitem(names["measure"].__globals__, "HERE", home)
    monkeypatch.delitem(names["TARGETS"], "Pendulum")
    monkeypatch.setitem(names["SETTINGS"], "steps", 2048)
    monkeypatch.setitem(names["SETTINGS"], "episodes", 2)
    return names


@pytest.mark.parametrize(("target", "steps"), [(501.0, None), (0.0, 1024)])
def test_what_is_found_is_kept(target, steps, short, printed, monkeypatch, tmp_path):
    """A target that nobody can reach, and one that everybody has."""
    monkeypatch.setitem(short["TARGETS"], "CartPole", target)
    kept = tmp_path / "new" / "learning.json"
    found = printed(short, "--seeds", 2, "--results", kept)
    record = json.loads(kept.read_text())
    assert [row["critic"] for row in record["rows"]] == ["scalar", "twin quantile"]
    assert [row["steps"] for row in record["rows"]] == [[steps, steps]] * 2
    assert record["settings"]["steps"] == 2048
    assert record["machine"]["cores"] >= 1
    assert found.endswith(printed(short, "--table", "--results", kept))

"""A page of several runs, whatever they have in common."""

import json
from pathlib import Path

import pytest
from reported import HTML, SVG, parsed, pictures, row, said, written

from ppo_jax.errors import UserError
from ppo_jax.reports.comparison import of


def test_runs_with_other_metrics_and_lengths(tmp_path):
    """What only one has is drawn of that one."""
    a = [row(i, eval__mean_reward=i, train__approx_kl=i) for i in (1, 2, 3)]
    b = [row(i, eval__mean_reward=2 * i, train__value_loss=i) for i in (2, 4)]
    paths = [written(tmp_path / name, rows) for name, rows in (("<a>", a), ("b", b))]
    tree = parsed(of(paths))
    text = said(tree)
    assert f"{paths[0]} unsaved 300 6 s 3 " in text
    assert {"train/approx_kl", "train/value_loss", "eval/mean_reward"} <= set(
        pictures(tree)
    )
    assert "Performance profile" not in text  # One run of each says nothing of chance.


def test_a_population_is_compared_by_its_median_member(tmp_path):
    each = {f"each__eval__mean_reward__{i}": i for i in (1, 2, 9)}
    rows = (
        [row(1, eval__mean_reward=2, best__eval__mean_reward=9, **each)],
        [row(1, eval__mean_reward=3)],
    )
    paths = [written(tmp_path / x, one) for x, one in zip("ab", rows, strict=True)]
    both, alone = said(parsed(of(paths))), said(parsed(of(paths[1:])))
    assert "Of a population it is that of the median member." in both
    assert "median member" not in alone


def test_runs_of_one_contender_have_one_colour(tmp_path):
    """And one name; a field that is off in one and absent in others is none."""
    paths = []
    for name, gamma in (("a", "0.9"), ("b", "0.5"), ("c", "0.9")):
        path = written(tmp_path / name, [row(i, eval__mean_reward=i) for i in (1, 2)])
        fields = {"gamma": gamma, "seed": str(len(paths))}
        fields |= {"only": "None"} if name == "a" else {}
        described = {k: {"kind": "number", "value": v} for k, v in fields.items()}
        (path / "config.json").write_text(json.dumps(described))
        paths.append(path)
    tree = parsed(of(paths))
    speed = pictures(tree)["time/fps"]
    tones = [
        p.get("class") for p in speed.iter(f"{SVG}path") if "line " in p.get("class")
    ]
    assert tones == ["line one", "line one", "line two"]
    text = said(tree)
    assert "gamma=0.9 2 " in text and "gamma 0.9 0.5 0.9 seed 0 1 2" in text
    assert "only" not in text.partition("differ")[2]


def test_a_run_without_an_evaluation_is_told_and_drawn(tmp_path):
    scores = {"a": {"eval__mean_reward": 2.5}, "b": {}}
    paths = [written(tmp_path / name, [row(1, **x)]) for name, x in scores.items()]
    tree = parsed(of(paths))
    assert "of each of 1 runs. 1 more has none. " in said(tree)
    assert f"{paths[1]}: from 100 to 100" in said(pictures(tree)["time/fps"])
    table = next(tree.iter(f"{HTML}table"))
    assert len([*table.iter(f"{HTML}tr")]) == 2


def test_a_run_is_none_of_a_sweep_that_is_called_like_its_seed(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    written(Path("seed 0"), [row(i, eval__mean_reward=i) for i in (1, 2)])
    values = {"steps": [100], "evaluations": {"eval/mean_reward": [1.0]}}
    results = {
        "metric": "eval/mean_reward",
        "settings": [{"gamma": 0.9}],
        "runs": [{"setting": 0, "seed": 0} | values],
    }
    Path("swept").mkdir()
    Path("swept/results.json").write_text(json.dumps(results))
    speed = pictures(parsed(of([Path("swept"), Path("seed 0")])))["time/fps"]
    lines = [x for x in speed.iter(f"{SVG}path") if "line " in x.get("class")]
    assert [line.get("class") for line in lines] == ["line two"]


def test_runs_without_an_evaluation_cannot_be_compared(tmp_path):
    paths = [written(tmp_path / name, [row(1)]) for name in "ab"]
    with pytest.raises(UserError, match="runs with eval/mean_reward, got none"):
        of(paths)

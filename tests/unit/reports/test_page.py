"""Whole pages: valid, of one file, small, and of whatever a run may be called."""

import json
import time
from pathlib import Path

import numpy as np
import pytest
from reported import HTML, SVG, generations, parsed, pictures, row, said, written

from ppo_jax.reports import page, records
from ppo_jax.reports.page import LIMIT, of_run

STORED = Path(__file__).parents[2] / "runs" / "stored"
NASTY = "<script>alert(1)</script>"


@pytest.mark.parametrize("name", ["feed_forward", "population", "recurrent"])
def test_a_page_of_a_run_of_a_version_before(name):
    """It is valid, refers to nothing outside, and tells of each picture in words."""
    text = of_run(records.read(STORED / name))
    tree = parsed(text)
    read = said(tree)
    for title in (
        "Learning",
        "Alerts",
        "Losses and diagnostics",
        "Speed",
        "Experiment",
    ):
        assert title in read
    assert ("Population" in read) == (name == "population")
    assert "TimeLimitChain" in read and "interrupted" in read
    ids = {each.get("id") for each in tree.iter(f"{HTML}section")}
    links = {each.get("href") for each in tree.iter(f"{HTML}a")}
    assert links == {f"#{each}" for each in ids} and len(ids) >= 5
    for svg in tree.iter(f"{SVG}svg"):
        assert svg.get("role") == "img"
        assert svg.find(f"{SVG}title").text and svg.find(f"{SVG}desc").text
    for header in tree.iter(f"{HTML}th"):
        assert header.get("scope") in ("row", "col")
    assert len(text) < 200_000


def test_whatever_a_run_says_is_only_text(tmp_path):
    """Names of folders, metrics, fields, numbers, files, agents; and their values."""
    folder = tmp_path / NASTY.replace("/", "")
    lines = generations(3, 2, {NASTY: np.array([0.1, 0.2, 0.3])})
    rows = [
        row(i)
        | {NASTY: i, f"mine/{NASTY}": i, f"warn/{NASTY}": 1, "eval/mean_reward": i}
        | {f"train/grad_norm/{NASTY}": i, "train/grad_norm/b": i, "mine/x": NASTY}
        for i in (1, 2, 3)
    ]
    written(folder, rows, lines)
    config = {path: {"kind": NASTY, "value": NASTY} for path in (NASTY, "env.type")}
    (folder / "config.json").write_text(json.dumps(config))
    attacked = {"eps": [0.1], "agents": {NASTY: {NASTY: [{"mean": 1}]}}}
    (folder / f"{folder.name}.json").write_text(json.dumps(attacked))
    tree = parsed(of_run(records.read(folder)).replace(f"<{folder.name}", "FAIL"))
    assert not [each for each in tree.iter() if each.tag == f"{HTML}script"]
    assert said(tree).count(NASTY) >= 10
    assert f"mine/{NASTY}" in pictures(tree)


def test_a_long_run_of_many_is_quick_and_small(tmp_path, monkeypatch):
    """128 members with six searched numbers, 1000 phases; less detail if need be."""
    random, size = np.random.default_rng(0), 128
    numbers = {f"n{i}": random.random(size) for i in range(6)}
    values = random.normal(size=(1000, 30)).cumsum(axis=0)
    rows = [
        row(i + 1)
        | {f"train/x{j}": x for j, x in enumerate(each)}
        | {f"q25/train/x{j}": x - 1 for j, x in enumerate(each)}
        | {f"q75/train/x{j}": x + 1 for j, x in enumerate(each)}
        for i, each in enumerate(values.tolist())
    ]
    for i, each in enumerate(rows[::10]):
        each |= {f"each/eval/mean_reward/{m}": float(m + i) for m in range(size)}
        each |= {"eval/mean_reward": i, "pbt/fittest": 5.0, "best/eval/mean_reward": i}
    run = records.read(written(tmp_path, rows, generations(size, 200, numbers)))
    begun = time.process_time()
    text = of_run(run)
    assert time.process_time() - begun < 15
    assert len(text) <= LIMIT and text.isascii()
    assert "128 members, 199 generations" in said(parsed(text))
    monkeypatch.setattr(page, "LIMIT", len(text) // 3)
    less = of_run(run)
    assert len(less) <= page.LIMIT and less.count("<svg") == text.count("<svg")


def test_what_cannot_be_read_is_said_above_all_else(tmp_path):
    written(tmp_path, [row(1)])
    (tmp_path / "lineage.jsonl").write_text("{}\n")
    text = said(parsed(of_run(records.read(tmp_path))))
    assert "lineage.jsonl: line 1: no generation" in text.partition("Learning")[0]

"""The command, on runs that are whole, odd and damaged: a page or a message."""

import json
import shutil
import webbrowser
from pathlib import Path

import pytest
from reported import generations, parsed, row, said, written

from ppo_jax.__main__ import main

STORED = Path(__file__).parent / "stored"


def whole(path):
    return written(path, [row(i, eval__mean_reward=float(i)) for i in (1, 2, 3)])


def of_nan(path):
    rows = [row(i, eval__mean_reward=None, train__loss=None) for i in (1, 2)]
    return written(path, [each | {"time/fps": None} for each in rows])


def half_a_line(path):
    with (whole(path) / "metrics.jsonl").open("a") as file:
        file.write('{"step": 400, "time/iter')
    return path


def damaged(path, name, text):
    (whole(path) / name).write_bytes(text)
    return path


def former(path):
    """A run of a version before, with no events beside it."""
    shutil.copytree(STORED / "population", path)
    return path


PAGES = {
    "whole": whole,
    "half_a_line": half_a_line,
    "former": former,
    "of_nan": of_nan,
    "one_row": lambda path: written(path, [row(1)]),
    "one_number": lambda path: written(path, [{"step": 1, "time/iterations": 1}]),
    "odd_values": lambda path: written(path, [row(1, a=[], b="x", c=True, d=10**400)]),
    "back_and_forth": lambda path: written(
        path, [row(3, x=1), row(1, x=2), row(2, x=0)]
    ),
    "torn_lineage": lambda path: damaged(path, "lineage.jsonl", b"{}\nhello\n"),
    "odd_lineage": lambda path: damaged(path, "lineage.jsonl", b"[1]\n"),
    "bytes_in_lineage": lambda path: damaged(path, "lineage.jsonl", b"\xff\xfe\n"),
    "torn_config": lambda path: damaged(path, "config.json", b"{"),
    "odd_config": lambda path: damaged(path, "config.json", b'{"gamma": 3}'),
    "torn_figures": lambda path: damaged(path, "figures.json", b"\xff"),
    "short_lineage": lambda path: written(
        path, [row(1)], generations(2, 1, {"gamma": [0.5, 0.75]})
    ),
}


@pytest.mark.parametrize("kind", PAGES)
def test_a_page_is_made_of_whatever_is_there(kind, tmp_path, capsys):
    """Of files that cannot be read it says so."""
    path = PAGES[kind](tmp_path / "run")
    assert main(["report", str(path)]) == 0
    shown = capsys.readouterr()
    assert (shown.out, shown.err) == (f"{path / 'report.html'}\n", "")
    text = said(parsed((path / "report.html").read_text()))
    for name in ("lineage", "config", "figures"):
        assert (f"{name}.json" in text) == (name in kind and kind != "short_lineage")


def empty(path):
    path.mkdir()
    return path


def without_step(path):
    return written(path, [row(1), {"loss": 3}])


def a_sweep_begun(path):
    return damaged(path, "sweep.json", b"{}")


MESSAGES = {
    "nowhere": (lambda path: path, "{path}: no run to be found there"),
    "empty": (empty, "{path}: no run to be found there"),
    "a_file": (
        lambda path: damaged(path, "x", b"") / "x",
        "x: no run to be found there",
    ),
    "torn_metrics": (
        lambda path: damaged(path, "metrics.jsonl", b"{}\nhello\n"),
        "{path}/metrics.jsonl: line 2 is no JSON",
    ),
    "list_of_metrics": (
        lambda path: damaged(path, "metrics.jsonl", b"[1]\n"),
        "{path}/metrics.jsonl: line 1: expected names and values, got [1]",
    ),
    "bytes": (
        lambda path: damaged(path, "metrics.jsonl", b"\xff\xfe\n"),
        "{path}/metrics.jsonl: line 1 is no JSON: 'utf-8' codec can't decode byte 0xff",
    ),
    "without_step": (without_step, "line 2: step: expected a number, got None"),
    "a_sweep_begun": (a_sweep_begun, "{path}: no batch of this sweep is finished"),
    "a_sweep_torn": (
        lambda path: damaged(path, "results.json", b"{"),
        "{path}/results.json: is no result of a sweep",
    ),
}


@pytest.mark.parametrize("kind", MESSAGES)
def test_what_is_no_run_is_told(kind, tmp_path, capsys):
    make, text = MESSAGES[kind]
    path = make(tmp_path / "run")
    assert main(["report", str(path)]) == 2
    shown = capsys.readouterr()
    assert shown.out == "" and text.format(path=path) in shown.err
    assert shown.err.startswith("error: ") and "Traceback" not in shown.err


def test_a_page_that_cannot_be_written_is_told(tmp_path, capsys):
    path = whole(tmp_path / "run")
    for out in (tmp_path / "missing" / "x.html", path):
        assert main(["report", str(path), "--out", str(out)]) == 2
        assert f"error: {out}: cannot be written: " in capsys.readouterr().err


def test_runs_are_compared(tmp_path, capsys, monkeypatch):
    """Where one stands, unless it is said where to; the same metrics are not needed."""
    monkeypatch.chdir(tmp_path)
    one, other = whole(tmp_path / "a"), former(tmp_path / "b")
    assert main(["report", str(one), str(other)]) == 0
    assert capsys.readouterr().out == "comparison.html\n"
    text = said(parsed((tmp_path / "comparison.html").read_text()))
    assert "Standing" in text and "Side by side" in text and str(one) in text
    assert main(["report", str(one), str(one)]) == 2
    assert "is given twice" in capsys.readouterr().err


def test_a_page_is_opened(tmp_path, capsys, monkeypatch):
    opened = []
    monkeypatch.setattr(webbrowser, "open", lambda url: opened.append(url) or False)
    path = whole(tmp_path / "a b")
    assert main(["report", str(path), "--open"]) == 0
    assert opened == [(path / "report.html").as_uri()]
    assert "no browser to be found; open " in capsys.readouterr().err


def test_a_sweep_is_a_page(tmp_path, capsys):
    (tmp_path / "results.json").write_text(
        json.dumps(
            {
                "metric": "eval/mean_reward",
                "settings": [{"gamma": 0.9}, {"gamma": 0.99}],
                "runs": [
                    {
                        "setting": i % 2,
                        "seed": i // 2,
                        "steps": [8, 16],
                        "evaluations": {"eval/mean_reward": [0.0, float(i)]},
                    }
                    for i in range(8)
                ],
            }
        )
    )
    assert main(["report", str(tmp_path)]) == 0
    text = said(parsed((tmp_path / "report.html").read_text()))
    assert "gamma=0.99 over gamma=0.9" in text and "Performance profile" in text
    assert "Sensitivity" in text

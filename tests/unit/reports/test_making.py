"""The page at the end of a training, which never costs the run anything."""

from pathlib import Path

from reported import parsed, row, written

from ppo_jax.reports import making


def test_a_page_is_left_beside_the_run(tmp_path):
    assert making.leave(written(tmp_path, [row(1)])) == tmp_path / "report.html"
    parsed((tmp_path / "report.html").read_text())


def test_whatever_is_wrong_costs_a_line(tmp_path, monkeypatch, capsys):
    """No run, a folder in the way, a fault of this package."""
    assert making.leave(tmp_path / "nowhere") is None
    (written(tmp_path, [row(1)]) / "report.html").mkdir()
    assert making.leave(tmp_path) is None
    monkeypatch.setattr(making, "text", lambda paths: 1 / 0)
    assert making.leave(tmp_path) is None
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) == 3 and all(line.startswith("no report: ") for line in lines)
    assert lines[2] == "no report: ZeroDivisionError: division by zero"


def test_where_a_page_goes():
    one, other = Path("runs/a"), Path("runs/b")
    assert making.place([one]) == one / "report.html"
    assert making.place([one, other]) == Path("comparison.html")

"""Runs that an earlier version wrote go on, and end as this one says that they do."""

import json
import shutil
from pathlib import Path

import pytest
from runs import EXACT, command, digest, rows

STORED = Path(__file__).parent / "stored"


def as_now(text):
    """Terms had indices, and have the names of their kinds; the third is an entropy."""
    return text.replace("terms.2.coef", "terms.entropy.coef")


@pytest.mark.parametrize("kind", ["feed_forward", "recurrent", "population"])
def test_a_stored_run_goes_on(kind, tmp_path):
    """PROP-18.1: from their checkpoint, and to the same end every time.

    What was written before the checkpoint stays as it was.
    """
    run_dir = shutil.copytree(STORED / kind, tmp_path / kind)
    written = rows(run_dir)
    path = run_dir / "experiment.py"
    options = ("--run-dir", run_dir, "--resume")
    done = command("train", path, *options, environment=EXACT)
    assert done.returncode == 0, done.stderr
    assert "resuming after update" in done.stdout
    expected = json.loads((run_dir / "digest.json").read_text())
    assert digest(run_dir).items() <= expected.items()
    again = rows(run_dir)
    for before, now in zip(written, again, strict=True):
        kept = {name: now[as_now(name)] for name in before}
        assert kept == before if now["step"] <= 128 else kept.keys() == before.keys()
        assert not {name for name in before if name != as_now(name)} & now.keys()


def test_a_new_run_searches_as_a_former_one_did(tmp_path):
    """P12: the same draws in the same order, whatever the numbers are called."""
    path, run_dir, former = tmp_path / "new.py", tmp_path / "run", STORED / "population"
    path.write_text(as_now((former / "experiment.py").read_text()))
    done = command("train", path, "--run-dir", run_dir, environment=EXACT)
    assert done.returncode == 0, done.stderr
    lines = (former / "lineage.jsonl").read_text()
    assert (run_dir / "lineage.jsonl").read_text() == as_now(lines)

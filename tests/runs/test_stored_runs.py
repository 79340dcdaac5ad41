"""Runs that an earlier version wrote go on, and end as this one says that they do."""

import json
import shutil
from pathlib import Path

import pytest
from runs import EXACT, digest, rows, session

STORED = Path(__file__).parent / "stored"


def as_now(text):
    """Terms had indices, and have the names of their kinds; the third is an entropy."""
    return text.replace("terms.2.coef", "terms.entropy.coef")


KINDS = ("feed_forward", "recurrent", "population")


@pytest.fixture(scope="module")
def home(tmp_path_factory):
    """Where stored runs went on and a new one began: one process, compiling once."""
    home = tmp_path_factory.mktemp("stored")
    lines = []
    for kind in KINDS:
        shutil.copytree(STORED / kind, home / kind)
        lines.append(f"train {kind}/experiment.py --run-dir {kind} --resume")
    experiment = (STORED / "population" / "experiment.py").read_text()
    (home / "new.py").write_text(as_now(experiment))
    lines.append("train new.py --run-dir new")
    ends = session([line.split() for line in lines], home, environment=EXACT)
    for kind, (status, text) in zip([*KINDS, "new"], ends, strict=True):
        assert status == 0, text
        (home / kind / "said").write_text(text)
    return home


@pytest.mark.parametrize("kind", KINDS)
def test_a_stored_run_goes_on(kind, home):
    """PROP-18.1: from their checkpoint, and to the same end every time.

    What was written before the checkpoint stays as it was.
    """
    run_dir, written = home / kind, rows(STORED / kind)
    assert "resuming after update" in (run_dir / "said").read_text()
    expected = json.loads((run_dir / "digest.json").read_text())
    assert digest(run_dir).items() <= expected.items()
    again = rows(run_dir)
    for before, now in zip(written, again, strict=True):
        kept = {name: now[as_now(name)] for name in before}
        assert kept == before if now["step"] <= 128 else kept.keys() == before.keys()
        assert not {name for name in before if name != as_now(name)} & now.keys()


def test_a_new_run_searches_as_a_former_one_did(home):
    """P12: the same draws in the same order, whatever the numbers are called."""
    lines = (STORED / "population" / "lineage.jsonl").read_text()
    assert (home / "new" / "lineage.jsonl").read_text() == as_now(lines)

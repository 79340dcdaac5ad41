"""A list says how all runs are, in columns, and how those go on that did not finish."""

import json
import time

from shelf import row, run

from ppo_jax.monitoring import listing


def test_every_run_is_a_line_and_what_ended_badly_has_advice(tmp_path):
    run(tmp_path / "a", [row(100, 2.5)], saved=[10], ending="finished")
    run(tmp_path / "b", [row(10, 1.0), row(20)], ending="failed", why="no disk")
    found = listing.listed(tmp_path)
    head, *lines = listing.text(found).splitlines()
    assert head.split()[:4] == ["run", "state", "evaluation", "best"]
    assert lines[0].split()[:7] == [
        *(f"{tmp_path}/a", "finished", "2.5", "2.5", "100", "of", "100")
    ]
    assert "MiB" in lines[1] and lines[2] == ""
    assert lines[3] == f"{tmp_path}/b: failed, no disk"
    assert lines[4].endswith(f"--run-dir {tmp_path}/b --resume")
    assert len({len(line) for line in (head, *lines[:2])}) == 1


def test_json_has_the_same_and_nothing_that_json_does_not_know(tmp_path):
    run(tmp_path / "x\udcff", [row(10, float("nan"))])
    (found,) = json.loads(
        json.dumps(listing.as_json(listing.listed(tmp_path)), allow_nan=False)
    )
    assert found["path"] == f"{tmp_path}/x�" and found["state"] == "unsaved"
    assert found["last"] is None and found["size"] > 0


def test_a_name_does_nothing_to_a_terminal(tmp_path):
    run(tmp_path / "\x1b[2J\u202e\r")
    text = listing.text(listing.listed(tmp_path))
    assert not [x for x in text if not x.isprintable() and x != "\n"]


def test_the_time_since_a_run_was_heard_of():
    assert listing.ago(time.time() - 40) == "40 s ago"
    assert listing.ago(time.time() + 5) == "0 s ago"  # The clock of another machine.
    assert listing.ago(0.0) == listing.UNKNOWN

"""Runs as their commands leave them: how they are, and one at a time in a directory."""

import contextlib
import io
import json
import os
import shlex
import signal

import pytest
from runs import ALIKE, EXPERIMENT, SAYS_ALL, begin, part, session, wait_for_checkpoint

from ppo_jax.__main__ import main
from ppo_jax.host.run_dir.presence import alone

LONG = "total_timesteps=32 * 10_000_000"
REFUSED = {
    "train mine.py --run-dir runs/live": "live",
    "train mine.py --run-dir runs/live --resume": "live",
    "train mine.py --run-dir begun": "begun",
    "sweep mine.py --run-dir begun": "begun",
}


def here(home, line):
    """What a command that trains nothing says: its status and its text."""
    with (
        contextlib.chdir(home),
        contextlib.redirect_stdout(io.StringIO()) as text,
        contextlib.redirect_stderr(text),
    ):
        try:
            status = main(shlex.split(line))
        except SystemExit as ending:
            status = ending.code
    return status, text.getvalue()


@pytest.fixture(scope="module")
def home(tmp_path_factory):
    home = tmp_path_factory.mktemp("runs")
    mine = EXPERIMENT.format(memory="")
    (home / "mine.py").write_text(mine.replace("32 * 24", "32 * 4"))
    (home / "long.py").write_text(mine.replace("total_timesteps=32 * 24", LONG))
    term = part("terms.Term", SAYS_ALL.replace("out.log_ratio", "1.0"))
    (home / "wrong.py").write_text(term)
    return home


@pytest.fixture(scope="module")
def told(home):
    """What is said while a run is under way, and after it was stopped.

    Of another one nothing is there but its lock, which this process has.
    """
    live = home / "runs" / "live"
    process = begin("train", home / "long.py", "--run-dir", live, environment=ALIKE)
    try:
        wait_for_checkpoint(process, live)
        process.send_signal(signal.SIGSTOP)  # It would only keep a core busy.
        kept = (live / "config.json").read_text()
        lines = [
            "train mine.py --run-dir runs/done --quiet",
            "train wrong.py --run-dir runs/wrong",
            *REFUSED,
            "runs runs --json during.json",
        ]
        with alone(home / "begun"):
            found = session(map(shlex.split, lines), home)
        assert (live / "config.json").read_text() == kept
        assert [path.name for path in (home / "begun").iterdir()] == [".lock"]
        process.send_signal(signal.SIGINT)
        process.send_signal(signal.SIGCONT)
        assert process.wait(60) == 130
    finally:
        process.kill()
        process.stdout.close()
    after = here(home, "runs runs --json after.json")
    pids = {"live": process.pid, "begun": os.getpid()}
    return dict(zip([*lines, "after"], [*found, after], strict=True)), pids


def states(home, name):
    rows = json.loads((home / name).read_text())
    return {os.path.basename(row["path"]): row for row in rows}


def test_a_run_is_under_way_until_it_was_interrupted(told, home):
    """Its next command is the one to go on by, and goes on."""
    during, after = states(home, "during.json"), states(home, "after.json")
    assert during["live"]["state"] == "running" and during["live"]["next"] == ""
    assert 0 < during["live"]["step"] < during["live"]["total"] == 32 * 10_000_000
    assert after["live"]["state"] == "interrupted" and after["live"]["why"] == ""
    _, *words = shlex.split(after["live"]["next"])
    assert words[:2] == ["-m", "ppo_jax.train"] and words[-1] == "--resume"
    assert after["live"]["step"] >= during["live"]["step"]


def test_a_run_has_finished_or_failed_for_a_cause(told, home):
    after = states(home, "after.json")
    assert after["done"]["state"] == "finished" and after["done"]["step"] == 128
    assert after["done"]["last"] == after["done"]["best"] == 5.0
    assert after["done"]["size"] > 10_000
    assert after["wrong"]["state"] == "failed"
    assert after["wrong"]["why"].startswith("Mine: loss: expected the shape")
    lines, _ = told
    status, text = lines["after"]
    assert status == 0 and "runs/wrong: failed, Mine: loss: expected" in text


@pytest.mark.parametrize("line", REFUSED)
def test_nothing_is_begun_where_a_run_is_under_way(told, line):
    """Nor resumed, also before its first checkpoint; its files stay as they are."""
    lines, pids = told
    status, text = lines[line]
    assert status == 2 and "Traceback" not in text
    place = line.split()[3]
    pid = pids[REFUSED[line]]
    said = f"error: {place}: a run is under way there, by process {pid} on "
    assert text.startswith(said)


MISTAKES = {
    "runs": "required: FOLDER",
    "runs nowhere": "error: nowhere: no run to be found there\n",
    "runs mine.py": "error: mine.py: no run to be found there\n",
    "runs empty": "error: empty: no run to be found there\n",
    "runs empty more": "error: no option is called 'more'",
    "runs empty --jsn x": "'--jsn'; the closest is '--json'\n",
    "runs empty --json": "--json: expected one argument",
    "runs empty --json empty": "error: empty: cannot be written: Is a directory\n",
    "runs empty --json no/x.json": "error: no/x.json: cannot be written: No such file",
    "monitor": "required: FOLDER",
    "monitor nowhere": "error: nowhere: no run to be found there\n",
    "monitor mine.py": "error: mine.py: no run to be found there\n",
    "monitor empty --port": "--port: expected one argument",
    "monitor empty --port x": "--port: invalid int value: 'x'",
    "monitor empty --port -1": "error: --port: expected 0 to 65535, got -1\n",
    "monitor empty --port 65536": "error: --port: expected 0 to 65535, got 65536\n",
    "monitor empty --prot 1": "'--prot'; the closest is '--port'\n",
    "monitor empty --host 0.0.0.0": "error: no option is called '--host'",
}


def test_mistakes_are_told(home):
    (home / "empty").mkdir()
    for line, said in MISTAKES.items():
        status, text = here(home, line)
        assert status == 2 and said in text and "Traceback" not in text, text
        assert not said.startswith("error: ") or text.startswith(said), text
    assert not list((home / "empty").iterdir())

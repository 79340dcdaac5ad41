"""What a run shows while it lasts, on a terminal and off it, and at its end."""

import json
import re
import shlex
import subprocess

import pytest
import zygote
from runs import ALIKE, EXPERIMENT, arguments, called, rows, saved

LATE = EXPERIMENT.format(memory="").replace("limit=5", "limit=9")
"""An experiment whose first episode ends after its first update."""
BREAKING = """
import dataclasses
from ppo_jax.envs import Faulty
from ppo_jax.envs.faults import NEVER

nan = float("nan")
env = Faulty(config.env, after=0, steps=NEVER, {what}=nan, rate={rate})
config = dataclasses.replace(config, env=env, max_failures=5)
"""


@pytest.fixture
def path(tmp_path):
    return breaking(tmp_path / "experiment.py", rate=0.0)


def breaking(path, what="reward", rate=1.0):
    """An experiment, a share of whose environments says NaN."""
    path.write_text(LATE + BREAKING.format(what=what, rate=rate))
    return path


def calm(text):
    """The lines that are no alerts."""
    return [line for line in text.splitlines() if not line.startswith("warn/")]


def test_without_a_terminal_a_short_run_takes_few_lines(path, tmp_path):
    """Six phases and evaluations: what it is, and what became of it."""
    run_dir = tmp_path / "run"
    done = called("train", path, "--run-dir", run_dir)
    assert done.returncode == 0 and done.stderr == ""
    first, compiled, *rest = calm(done.stdout)
    assert first == f"training on cpu (cpu), in {run_dir}"
    assert re.fullmatch(r"compiled in [\d.]+ s", compiled)
    assert "steps/s" in rest.pop(0)
    assert re.fullmatch(
        r"finished: 768 steps in [\d.]+ s, [\d.]+ s of it compiling", rest.pop(0)
    )
    assert rest == [
        "  evaluation 9",
        f"  in {run_dir}",
        f"  {run_dir / 'report.html'}",
        f"  python -m ppo_jax.evaluate {run_dir}",
    ]
    lines = (run_dir / "metrics.jsonl").read_text().splitlines()
    clock = [json.loads(line) for line in lines]
    assert [row["time/compiling"] > 0 for row in clock] == [True] + [False] * 5
    assert clock[0]["time/fps"] > clock[-1]["time/fps"] / 100


def test_a_run_is_as_loud_as_it_is_asked_to_be(path, tmp_path):
    done = called("train", path, "--run-dir", tmp_path / "a", "--verbose")
    shown = [line for line in done.stdout.splitlines() if "steps/s" in line]
    assert [line.split()[0] for line in shown] == [str(128 * i) for i in range(1, 7)]
    done = called("train", path, "--run-dir", tmp_path / "b", "--quiet")
    assert done.returncode == 0 and done.stderr == "" and calm(done.stdout) == []
    assert done.stdout.startswith("warn/explained_variance_low: ")
    assert rows(tmp_path / "a") == rows(tmp_path / "b")
    done = called("train", path, "--quiet", "--verbose")
    assert done.returncode == 2
    assert "--verbose: not allowed with argument --quiet" in done.stderr


TERMINAL = """
import contextlib, os, pty, sys
from ppo_jax.__main__ import main

child, terminal = pty.fork()
if not child:
    sys.exit(main(sys.argv[1:]))
with contextlib.suppress(OSError):  # The other end is closed.
    while part := os.read(terminal, 4096):
        sys.stdout.buffer.write(part)
sys.exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""


def test_a_terminal_has_a_bar(path, tmp_path):
    words = ["-c", TERMINAL, "train", str(path), "--run-dir", str(tmp_path / "run")]
    shown = zygote.run(words, ALIKE | {"TERM": "xterm", "COLUMNS": "160"})
    assert shown.returncode == 0, shown.stdout
    text = re.sub(r"\x1b\[[\d;?]*[A-Za-z]", "", shown.stdout)
    last = text[text.rindex("━ 100% 768 of 768 steps") :].splitlines()[0]
    for sign in ("steps/s", "return 9", "evaluation 9", "0:00:00"):
        assert sign in last
    assert "finished: 768 steps" in text


def piped(words, reader):
    """The status of a command, and what is heard of it behind its reader."""
    line = f"{shlex.join(words)} | {reader}; exit ${{PIPESTATUS[0]}}"
    return subprocess.run(
        ["bash", "-c", line],
        capture_output=True,
        text=True,
        env=ALIKE,
        timeout=180,
        check=False,
    )


def test_a_run_outlives_whoever_reads_it(path, tmp_path):
    """Through `head`, which closes the pipe after a line."""
    run_dir = tmp_path / "run"
    words = arguments("train", path, "--run-dir", run_dir, "--verbose")
    done = piped(words, "head -n 1")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == f"training on cpu (cpu), in {run_dir}\n"
    assert rows(run_dir)[-1]["step"] == 768 and saved(run_dir)[-1] == 24


def test_a_run_outlives_a_full_disk_behind_its_output(path, tmp_path):
    run_dir = tmp_path / "run"
    words = arguments("train", path, "--run-dir", run_dir, "--verbose")
    with open("/dev/full", "w") as full:
        done = subprocess.run(
            words, stdout=full, stderr=subprocess.PIPE, env=ALIKE, check=False
        )
    assert (done.returncode, done.stderr) == (0, b"")
    assert rows(run_dir)[-1]["step"] == 768 and saved(run_dir)[-1] == 24


def test_a_command_that_nobody_reads_ends(path):
    done = piped(arguments("train", path, "--help"), "true")
    assert done.returncode in (0, 141) and done.stderr == ""


def test_before_an_episode_ends_there_is_no_return(path, tmp_path):
    budget = ("--total-timesteps", 32, "--verbose")
    done = called("train", path, "--run-dir", tmp_path / "run", *budget)
    assert done.returncode == 0 and "nan" not in done.stdout
    assert "32 of 32 steps" in done.stdout and "return" not in done.stdout


@pytest.mark.parametrize("what", ["reward", "obs", "state"])
def test_an_environment_that_is_never_finite_fails(path, tmp_path, what):
    """From the start: status 3, and a word on whose fault that is."""
    run_dir = tmp_path / "run"
    done = called("train", breaking(path, what=what), "--run-dir", run_dir)
    assert done.returncode == 3
    assert done.stderr == (
        "error: 5 updates in a row had no step with finite observations and rewards; "
        "`ppo_jax.envs.check` plays the environment and says which\n"
    )
    assert "failed: 256 steps" in done.stdout and "nan" not in done.stdout
    assert "  quarantined: 100.00% of the steps were not finite" in done.stdout
    streaks = [row["error/failure_streak"] for row in rows(run_dir)]
    assert streaks == [4, 8]


def test_the_end_says_what_share_of_steps_was_quarantined(path, tmp_path):
    """Of 768 steps all those of one of four environments."""
    run_dir = tmp_path / "run"
    done = called("train", breaking(path, rate=0.25), "--run-dir", run_dir)
    assert done.returncode == 0, done.stderr
    counted = sum(row["error/quarantined_steps"] for row in rows(run_dir))
    assert counted == 192
    assert "  quarantined: 25.00% of the steps were not finite\n" in done.stdout


def test_an_end_without_its_log_is_an_end(path, tmp_path):
    run_dir = tmp_path / "run"
    assert called("train", path, "--run-dir", run_dir).returncode == 0
    (run_dir / "metrics.jsonl").unlink()
    done = called("train", path, "--run-dir", run_dir, "--resume")
    assert done.returncode == 0
    lost, report = done.stderr.splitlines()
    assert "metrics.jsonl: ends at step 0, but" in lost
    assert report.startswith("no report: ")
    assert done.stdout.endswith(f"finished, without a row of metrics in {run_dir}\n")


def test_an_alert_has_a_page():
    done = called("alerts", "warn/critic1_vanishing_gradients")
    assert done.returncode == 0
    assert "train/critic*_grad_norm < 1e-08; healthy: above 10⁻⁵\n" in done.stdout
    assert "That critic learns nothing" in done.stdout
    done = called("alerts", "warn/critic1_vanishing_gradient")
    assert done.returncode == 2 and done.stdout == ""
    assert "the closest is 'warn/critic*_vanishing_gradients'" in done.stderr

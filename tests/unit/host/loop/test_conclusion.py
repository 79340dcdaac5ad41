"""What a run tells at its end, of rows given by hand."""

import json
from pathlib import Path
from types import SimpleNamespace

import pytest

from ppo_jax.host.loop.conclusion import conclude, summary
from ppo_jax.host.process.console import NORMAL, QUIET


def test_the_fittest_may_have_no_finite_return():
    """Fitness can be another number than the mean return."""
    row = {"step": 8, "time/time_elapsed": 1.0, "error/quarantined_steps": 0.0}
    row |= {"eval/mean_reward": 2.0, "best/eval/mean_reward": None, "pbt/fittest": 1.0}
    text = summary("finished", [row], Path("run"))
    assert "evaluation 2, the median member; the fittest, 1: not finite\n" in text


def row(step, **metrics):
    return {
        "step": step,
        "time/time_elapsed": step / 10,
        "time/compiling": 2.0,
        "error/quarantined_steps": 0.0,
    } | {name.replace("__", "/"): value for name, value in metrics.items()}


def test_the_end_in_a_few_lines():
    """What was compiled is added up; the best evaluation is told if it was another."""
    rows = [row(1000, eval__mean_reward=9.5), row(2000), row(3000)]
    rows += [row(4000, eval__mean_reward=7.25), row(5000, eval__mean_reward=None)]
    assert summary("finished", rows, Path("run")).splitlines() == [
        "finished: 5,000 steps in 8 min, 10 s of it compiling",
        "  evaluation 7.25; best 9.5 after 1,000 steps",
        "  in run",
        "  python -m ppo_jax.evaluate run",
        "  python -m ppo_jax.report run",
    ]
    assert summary("interrupted", rows[:1], Path("run")).splitlines() == [
        "interrupted: 1,000 steps in 100 s, 2 s of it compiling",
        "  evaluation 9.5",
        "  in run",
    ]
    assert "no evaluation was finite" in summary("failed", rows[4:], Path("run"))
    assert "not evaluated yet" in summary("failed", rows[1:2], Path("run"))


def test_what_is_next_can_be_typed():
    text = summary("finished", [row(1000)], Path("my runs/1"), Path("report.html"))
    assert text.endswith("\n  python -m ppo_jax.evaluate 'my runs/1'")


def test_the_share_of_what_was_quarantined_is_told():
    rows = [row(1000, error__quarantined_steps=30.0), row(4000)]
    text = summary("finished", rows, Path("run"))
    assert "  quarantined: 0.75% of the steps were not finite\n" in text


@pytest.mark.parametrize(
    ("ending", "quarantined", "status", "out", "err"),
    [
        ("finished", 0.0, 0, "finished: 64 steps", ""),
        ("interrupted", 0.0, 130, "go on with: x\n", ""),
        ("failed", 0.0, 3, "failed: 64", "3 updates in a row had no finite optimiser"),
        ("failed", 32.0, 3, "", "3 updates in a row had no step with finite observ"),
    ],
)
def test_a_run_ends_with_a_status_and_its_cause(
    ending, quarantined, status, out, err, tmp_path, capsys
):
    """Why it failed is said to whoever looks for errors, however quiet it is."""
    rows = [row(32), row(64, error__quarantined_steps=quarantined)]
    text = "".join(json.dumps(each) + "\n" for each in rows)
    (tmp_path / "metrics.jsonl").write_text(text)
    config = SimpleNamespace(max_failures=3)
    for how, quiet in ((NORMAL, False), (QUIET, True)):
        given = conclude(ending, "go on with: x", config, tmp_path, how)
        shown = capsys.readouterr()
        assert given == status
        assert err in shown.err and bool(shown.err) == bool(err)
        assert (out in shown.out) or quiet
        assert bool(shown.out) == (not quiet or ending == "interrupted")


def test_the_cause_is_told_where_rows_have_no_more_than_evaluations(tmp_path, capsys):
    """Those of an agent that learned beside others, and was saved alone."""
    known = {"step": 64, "time/time_elapsed": 1.0, "eval/mean_reward": 2.0}
    (tmp_path / "metrics.jsonl").write_text(json.dumps(known) + "\n")
    config = SimpleNamespace(max_failures=3)
    assert conclude("failed", "go on with: x", config, tmp_path, NORMAL) == 3
    assert "3 updates in a row had no finite step\n" in capsys.readouterr().err

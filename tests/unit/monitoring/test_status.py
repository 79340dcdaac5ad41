"""What is said of a run is what became of it."""

import json
import shutil

import pytest
from shelf import BUDGET, log, row, run

from ppo_jax.host.run_dir.claims import AGAIN
from ppo_jax.host.run_dir.experiment import UNSAVED
from ppo_jax.host.run_dir.presence import alone
from ppo_jax.monitoring.status import BEFORE, WITHOUT_A_WORD, ended_badly, status
from ppo_jax.monitoring.tail import Tail

ROWS = [row(10, 1.0), row(20, 3.0), row(30, 2.0)]


def now(run_dir):
    tail = Tail(run_dir / "metrics.jsonl")
    tail.read()
    return status(run_dir, tail)


@pytest.mark.parametrize(
    ("left", "state", "why"),
    [
        ({"saved": [3], "ending": "finished"}, "finished", ""),
        ({"saved": [3], "ending": "stopped"}, "stopped", ""),
        ({"saved": [3], "ending": "interrupted"}, "interrupted", ""),
        ({"saved": [3], "ending": "failed", "why": "full"}, "failed", "full"),
        ({"ending": "failed", "why": "no critic"}, "failed", "no critic"),
        ({"saved": [3]}, "interrupted", WITHOUT_A_WORD),
        ({"saved": [3], "ending": "<b>"}, "interrupted", WITHOUT_A_WORD),
        ({}, "unsaved", BEFORE),
        ({"saved": ["3.orbax-checkpoint-tmp"]}, "unsaved", BEFORE),
    ],
)
def test_a_run_that_has_ended(tmp_path, left, state, why):
    """Killed, it is interrupted; without a checkpoint it has not come far enough."""
    found = now(run(tmp_path / "x", ROWS, **left))
    assert (found.state, found.why) == (state, why)
    assert ended_badly(found) == (state not in ("finished", "stopped"))
    assert (found.step, found.total, found.last, found.best) == (30, 100, 2.0, 3.0)
    assert found.left is None


def test_a_run_that_lost_what_it_begins_with_has_no_next_command(tmp_path):
    """However it ended; once that is saved it goes on like any other."""
    run_dir = run(tmp_path / "x", ending="failed", why="full")
    (run_dir / UNSAVED).touch()
    assert now(run_dir)[2:4] == ("unsaved", AGAIN) and now(run_dir).next == ""
    (run_dir / "checkpoints" / "0").mkdir(parents=True)
    assert now(run_dir).state == "failed" and "--resume" in now(run_dir).next


def test_a_run_from_before_endings_were_kept_has_finished(tmp_path):
    """If it has all of its steps."""
    rows = [row(step) for step in range(10, 101, 10)]
    assert now(run(tmp_path / "x", rows, saved=[10])).state == "finished"
    assert now(run(tmp_path / "y", rows[:-1], saved=[9])).state == "interrupted"


def test_a_run_that_was_killed_before_its_last_checkpoint_goes_on(tmp_path):
    """Though its log has all of its steps."""
    rows = [row(step, **{"time/iterations": step / 10}) for step in (50, 100)]
    found = now(run(tmp_path / "x", rows, saved=[5, 9]))
    assert (found.state, found.why) == ("interrupted", WITHOUT_A_WORD)
    assert "--resume" in found.next
    assert now(run(tmp_path / "y", rows, saved=[9, 10])).state == "finished"


def test_a_run_is_running_while_a_process_is_at_work(tmp_path):
    """Whatever it left behind before; what is left is told by its speed of late."""
    run_dir = run(tmp_path / "x", ROWS, saved=[3], ending="failed", why="once")
    with alone(run_dir):
        found = now(run_dir)
        assert (found.state, found.why, found.next) == ("running", "", "")
        assert found.left == pytest.approx(7.0)
    assert now(run_dir).state == "failed"


@pytest.mark.parametrize(
    ("quarantined", "said"),
    [(0.0, "no finite optimiser step"), (10.0, "no step with finite observations")],
)
def test_why_it_learned_nothing_is_read_from_its_log(tmp_path, quarantined, said):
    rows = [row(10), row(20, **{"error/quarantined_steps": quarantined})]
    found = now(run(tmp_path / "x", rows, saved=[2], ending="failed"))
    assert found.why.startswith("3 updates in a row had ") and said in found.why


def test_a_budget_is_that_of_whole_updates(tmp_path):
    """Also of a batch, whose experiment is the sweep's, with a structure of its own."""
    budget = BUDGET | {"total_timesteps": 107}
    assert now(run(tmp_path / "x", budget=budget)).total == 100
    sweep = run(tmp_path / "sweep", budget=budget)
    rows = [row(20, **{"time/iterations": 1.0})]
    batch = run(sweep / "batches" / "001", rows)
    (batch / "config.json").unlink()
    assert now(batch).total == 100 and now(batch).kind == "batch"


KINDS = {
    "run": ({}, "train {0}/experiment.py --run-dir {0} --resume"),
    "population": (
        {"lineage.jsonl": ""},
        "train {0}/experiment.py --run-dir {0} --res",
    ),
    "replay": ({"schedule.json": "[]"}, "replay {0} --to {0} --resume"),
    "sweep": ({"sweep.json": "{}"}, "sweep {0}/experiment.py --run-dir {0} --resume"),
    "sweep of what is no": ({"sweep.json": "7"}, "sweep {0}/experiment.py --run-dir "),
    "walkforward": (
        {"walk.json": "{}"},
        "walkforward {0}/experiment.py --run-dir {0} --resume",
    ),
}


@pytest.mark.parametrize("kind", KINDS)
def test_what_is_next_can_be_typed(tmp_path, kind):
    """Every kind goes on by the command that began it."""
    files, said = KINDS[kind]
    run_dir = run(tmp_path / "x", saved=[1])
    for name, text in files.items():
        (run_dir / name).write_text(text)
    found = now(run_dir)
    assert found.kind == kind.split()[0]
    assert found.next.startswith(f"python -m ppo_jax.{said.format(run_dir)}")


def test_a_run_in_a_folder_that_is_called_batches_is_none_of_a_sweep(tmp_path):
    run_dir = run(tmp_path / "batches" / "x", ROWS, saved=[3])
    found = now(run_dir)
    assert (found.kind, found.total) == ("run", 100)
    assert f"--run-dir {run_dir} --resume" in found.next


def test_what_is_next_of_a_batch_is_that_of_its_sweep(tmp_path):
    sweep = run(tmp_path / "sweep")
    found = now(run(sweep / "batches" / "001", saved=[1]))
    assert found.next.startswith(f"python -m ppo_jax.sweep {sweep}/experiment.py ")
    (sweep / "walk.json").write_text("{}")
    found = now(sweep / "batches" / "001")
    assert found.next.startswith(f"python -m ppo_jax.walkforward {sweep}/experiment")


def test_a_sweep_of_python_goes_on_in_python(tmp_path):
    """No command could; its experiments need not be in a file."""
    sweep = run(tmp_path / "sweep", ending="interrupted")
    batch = run(sweep / "batches" / "001", saved=[1])
    (sweep / "sweep.json").write_text('{"settings": [], "runs": []}')
    call = f"ppo_jax.fit_all(configs, '{sweep}', resume=True)"
    assert now(sweep).next == now(batch).next == call
    (sweep / "experiment.py").unlink()
    assert now(sweep).next == call


@pytest.mark.parametrize("ended", ["finished", "stopped", "interrupted", None])
def test_a_run_whose_checkpoints_are_gone_has_no_next_command(tmp_path, ended):
    """Each would be refused; what can be done about it is said."""
    run_dir = run(tmp_path / "x", ROWS, ending=ended)
    shutil.rmtree(run_dir / "checkpoints")
    found = now(run_dir)
    assert found.state == (ended or "unsaved") and found.next == ""
    assert found.why.startswith("the log reaches step 30, but no checkpoint is there")
    (run_dir / "checkpoints" / "3").mkdir(parents=True)
    assert now(run_dir).next and "no checkpoint" not in now(run_dir).why


def test_what_is_next_is_quoted_and_evaluates_what_has_finished(tmp_path):
    found = now(run(tmp_path / "a b; rm", saved=[1], ending="finished"))
    assert found.next == f"python -m ppo_jax.evaluate '{tmp_path}/a b; rm'"


@pytest.mark.parametrize("saved", [[], [3]])
@pytest.mark.parametrize(
    "text",
    [
        *("", "{", "[]", "3", '{"num_envs": {"value": "x"}}'),
        *('{"eval_phases": {"value": "x"}}', '{"eval_phases": 3}'),
    ],
)
def test_an_experiment_that_cannot_be_read_has_no_budget(tmp_path, text, saved):
    run_dir = run(tmp_path / "x", ROWS, saved)
    (run_dir / "config.json").write_text(text)
    state = "interrupted" if saved else "unsaved"
    assert now(run_dir).total is None and now(run_dir).state == state


def test_a_sweep_whose_experiment_cannot_be_read_hides_no_run(tmp_path):
    run_dir = run(tmp_path / "x", ROWS, saved=[3])
    (run_dir / "config.json").write_text('{"env.type": {"kind": "structure"}}')
    (run_dir / "sweep.json").write_text("{}")
    assert now(run_dir).kind == "sweep"


def test_a_budget_of_nothing_is_none(tmp_path):
    found = now(run(tmp_path / "x", budget=BUDGET | {"num_envs": 0}))
    assert found.total is None
    run_dir = run(tmp_path / "y", [row(0)], saved=[1])
    log(run_dir, [row(10)])
    assert json.dumps(now(run_dir)._asdict() | {"path": ""})


@pytest.mark.parametrize("line", ["no JSON\n", "[1]\n", "{}\n"])
def test_an_odd_line_hides_no_run(tmp_path, line):
    """Also one that is not the last, of a run without checkpoints."""
    run_dir = run(tmp_path / "x", ROWS)
    shutil.rmtree(run_dir / "checkpoints")
    log = run_dir / "metrics.jsonl"
    log.write_text(line + log.read_text())
    assert now(run_dir).state == "unsaved"

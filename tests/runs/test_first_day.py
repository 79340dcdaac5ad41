"""Modules, runs and code of one's own on a first day with the commands.

A message names whose part is wrong and shows the user's own lines; nothing comes raw.
"""

import re
import runpy
import shutil
from pathlib import Path

import pytest
from runs import ALIKE, SAYS_ALL, WALK, called, command, part, rows, session


def written(folder, text, name="mine.py"):
    folder.mkdir(exist_ok=True)
    path = folder / name
    path.write_text(text)
    return path


def elsewhere(*words):
    """What a command ends with, in another process and another folder."""
    return command(*words, cwd="/", environment=ALIKE)


def refused(done, *said):
    """A command ended with status 2 and said all that; nothing is raw."""
    assert done.returncode == 2, done.stderr
    for text in said:
        assert text in done.stderr
    assert "Traceback" not in done.stderr and "site-packages" not in done.stderr


def test_an_error_in_a_module_shows_the_way_to_it(tmp_path):
    module = written(tmp_path, "def load():\n    raise KeyError('x')\n", "data.py")
    path = written(tmp_path, "import data\ndata.load()\n")
    done = called("sweep", path)
    refused(done)
    assert done.stderr == (
        f"error: {path}: KeyError: 'x'\n"
        f'  File "{path}", line 2, in <module>\n    data.load()\n'
        f"  File \"{module}\", line 2, in load\n    raise KeyError('x')\n"
    )


@pytest.fixture(scope="module")
def walked(tmp_path_factory):
    """A run of an experiment with modules beside it, both of which are gone."""
    home = tmp_path_factory.mktemp("first_day")
    written(home / "parts", "LIMIT = 4\n", "sizes.py")
    written(home / "parts", "", "__init__.py")
    written(home, WALK, "walks.py")
    text = "from walks import *\nfrom parts.sizes import LIMIT\n"
    text += "config = Config(env=Walk(limit=LIMIT), **SIZES)\n"
    path = written(home, text)
    done = elsewhere("train", path, "--run-dir", home / "run")
    assert done.returncode == 0, done.stderr
    path.unlink()
    (home / "walks.py").unlink()
    shutil.rmtree(home / "parts")
    return home / "run"


def test_modules_beside_an_experiment_are_kept_with_its_run(walked, tmp_path):
    """Found from any folder, by whatever reads the run directory."""
    run_dir = shutil.copytree(walked, tmp_path / "moved")
    done = elsewhere("evaluate", run_dir, "--episodes", 2)
    assert done.returncode == 0, done.stderr
    path, more = run_dir / "experiment.py", ("--total-timesteps", 32 * 3)
    done = elsewhere("train", path, "--run-dir", run_dir, "--resume", *more)
    assert done.returncode == 0, done.stderr
    assert "resuming after update 2 of 3" in done.stdout
    assert rows(run_dir)[-1]["rollout/ep_len_mean"] == 4


def test_each_of_two_runs_has_its_own_modules(walked, tmp_path):
    other = shutil.copytree(walked, tmp_path / "other")
    sizes = other / "imported" / "parts" / "sizes.py"
    sizes.write_text("LIMIT = 5\n")
    options = ("--against", other, "--eps", 0, "--episodes", 1)
    refused(elsewhere("robustness", walked, *options), "another environment")


def test_what_an_environment_does_later_has_a_line_too(tmp_path):
    """A callback fails while the program runs, which no tracing can know."""
    text = WALK.replace("config =", "def ask(x): return x / None\n\n\nconfig =")
    text = text.replace("import jax.numpy", "import jax\nimport jax.numpy")
    call = "state = jax.pure_callback(ask, state, state, vmap_method='sequential')"
    path = written(tmp_path, text.replace("state = state + 1", call))
    done = called("train", path, "--run-dir", tmp_path / "run")
    refused(done, "error: TypeError: unsupported operand", "return x / None")
    assert re.search(r'File ".*/mine.py", line \d+, in ask\n', done.stderr)
    assert not (tmp_path / "run" / "checkpoints" / "1").exists()


def test_a_run_that_never_began_is_not_in_the_way(tmp_path):
    text = part("terms.Term", SAYS_ALL.replace("out.log_ratio", "1.0"))
    path, run_dir = written(tmp_path, text), tmp_path / "run"
    refused(called("train", path, "--run-dir", run_dir), "got a float")
    assert (run_dir / "config.json").exists()
    done = called("train", written(tmp_path, WALK), "--run-dir", run_dir)
    assert done.returncode == 0, done.stderr
    done = called("train", path, "--run-dir", run_dir)
    refused(done, f"{run_dir}: holds a run already; give --resume")


DOCS = Path(__file__).parents[2] / "docs"
SESSION = (DOCS / "first_day.md").read_text()
QUICK = ("python -m ppo_jax", "python -m ppo_jax.alerts warn/explained_variance_low")
"""Commands that train nothing, beside those that end with status 2."""


def without_frames(text):
    """Words, whatever a terminal draws around them."""
    return [word for word in text.split() if word.strip("╭─╮│╰╯-")]


def test_what_is_said_without_training_is_as_recorded(tmp_path, monkeypatch):
    """Word for word: the commands, an alert, and every mistake."""
    found = re.findall(r"^\$ (.*)\n((?:[^$`].*\n|\n)*)", SESSION, re.MULTILINE)
    recorded = [
        (command, said)
        for command, said in found
        if command in QUICK or said.endswith("[status 2]\n")
    ]
    assert len(recorded) == 7
    (tmp_path / "experiments").symlink_to(DOCS.parent / "experiments")
    run_dir = tmp_path / "runs" / "cartpole"
    (run_dir / "checkpoints" / "488").mkdir(parents=True)
    (run_dir / "overrides.json").write_text("[]")
    room = re.search(r"```python\n(# room.py\n.*?)```", SESSION, re.DOTALL)
    written(tmp_path, room[1], "room.py")
    monkeypatch.setitem(ALIKE, "COLUMNS", "88")
    lines = [command.removeprefix("python -m ppo_jax") for command, _ in recorded]
    answers = session([line.lstrip(".").split() for line in lines], tmp_path)
    for (_, said), (status, text) in zip(recorded, answers, strict=True):
        ended = f"[status {status}]" if status else ""
        assert without_frames(text + ended) == without_frames(said)


def lasting(text):
    """A recorded session without numbers, the time of lines, and what began by then."""
    said = re.sub(r"-?\d[\d,.]*(e-?\d+)?( s\b| min\b)?", "#", text)
    fleeting = re.compile(r" *# of # steps|warn/|  (not )?evaluat|events\.out")
    return [line for line in said.splitlines() if not fleeting.match(line)]


@pytest.mark.slow
def test_the_recorded_session_still_goes(tmp_path):
    """Every command of a first day says what the document says."""
    again = runpy.run_path(str(DOCS / "record.py"))["recorded"](SESSION, tmp_path)
    assert lasting(again) == lasting(SESSION)
    assert SESSION.count("[status 2]") == 5 and SESSION.count("[status ") == 6
    assert "Traceback" not in SESSION

"""What is written to a run directory is there together, and what was there stays."""

import json
from contextlib import suppress
from unittest import mock

import pytest

from ppo_jax import Config
from ppo_jax.host.run_dir import experiment, files, storing
from ppo_jax.host.run_dir.experiment import ExperimentError

CONFIG = Config("CartPole-v1", gamma=0.5)
FIRST = {"experiment.py": b"x = 1\n", "imported/one.py": "# \u00e9".encode("latin-1")}
SECOND = {"experiment.py": b"x = 2\n", "imported/two.py": b""}


@pytest.fixture
def run_dir(tmp_path):
    storing.store(tmp_path / "run", FIRST, ["--seed", "1"], CONFIG)
    return tmp_path / "run"


def contents(run_dir):
    return {
        str(path.relative_to(run_dir)): path.read_bytes()
        for path in run_dir.rglob("*")
        if path.is_file()
    }


def test_nothing_of_another_experiment_stays(run_dir):
    """A module that was a package, and a reason where there is a file by now."""

    def stored(**texts):
        kept = {name.replace("__", "/") + ".py": x for name, x in texts.items()}
        storing.store(run_dir, kept, [], CONFIG)
        return {str(x.relative_to(run_dir)) for x in run_dir.rglob("*.py")}

    one = {"experiment": b"", "imported__helper__room": b"x = 1\n"}
    assert stored(**one) == {"experiment.py", "imported/helper/room.py"}
    two = {"experiment": b"", "imported__helper": b"x = 2\n"}
    assert stored(**two) == {"experiment.py", "imported/helper.py"}
    storing.store(run_dir, {"made_in_python.txt": b"no file"}, [], CONFIG)
    with pytest.raises(ExperimentError, match="no such experiment file: no file"):
        experiment.load(run_dir / "experiment.py", [])
    assert stored(**one) == {"experiment.py", "imported/helper/room.py"}
    assert not (run_dir / "made_in_python.txt").exists()


@pytest.mark.parametrize("kept", ["sweep.json", "walk.json"])
def test_a_run_takes_the_place_of_many_of_which_nothing_was_saved(run_dir, kept):
    (run_dir / kept).write_text("{}")
    with pytest.raises(ExperimentError, match="holds a "):
        experiment.require_same_structure(run_dir, CONFIG)
    storing.store(run_dir, {}, [], CONFIG)
    experiment.require_same_structure(run_dir, CONFIG)


def test_where_nothing_can_be_kept_is_said(tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(ExperimentError, match="no run can be kept there"):
        storing.store(tmp_path / "file" / "run", {}, [], CONFIG)


def again(run_dir, texts):
    """Stores the experiment of a run that goes on; returns what is said."""
    said = []
    storing.store_again(run_dir, texts, [], CONFIG, said.append)
    return said


@pytest.mark.parametrize("before", range(6))
def test_killed_in_between_an_experiment_is_the_old_or_the_new(run_dir, before):
    """Whole as soon as anybody is at work in the directory again."""
    old = contents(run_dir)
    (run_dir / "checkpoints" / "8").mkdir(parents=True)
    parts = iter([files.write_bytes] * before)

    def write(*what):
        next(parts)(*what)

    with mock.patch.object(files, "write_bytes", write), suppress(StopIteration):
        again(run_dir, SECOND)
    files.complete(run_dir)
    found = contents(run_dir)
    if before:
        assert found.keys() - old == {"imported/two.py", *former(FIRST)}
        assert found["experiment.py"] == SECOND["experiment.py"]
        assert "imported/one.py" not in found
    else:
        assert found == old


def former(texts):
    return {f"former/8/{name}" for name in (*texts, "overrides.json")}


@pytest.mark.parametrize(("text", "said"), [("", "is no JSON"), ("[]", "names and")])
def test_a_list_of_replaced_files_that_is_damaged_is_said(run_dir, text, said):
    (run_dir / files.REPLACING).write_text(text)
    with pytest.raises(ExperimentError, match=rf"{files.REPLACING}.* {said}"):
        files.complete(run_dir)


def test_what_a_run_was_trained_with_is_kept(run_dir):
    """Once for a checkpoint: what has saved none has trained nothing."""
    storing.store(run_dir, FIRST, ["--seed", "1"], CONFIG)
    assert again(run_dir, FIRST) == [] and not (run_dir / "former").exists()
    assert again(run_dir, SECOND) == []  # Nor has what is not saved.
    storing.store(run_dir, FIRST, ["--seed", "1"], CONFIG)
    (run_dir / "checkpoints" / "8").mkdir(parents=True)
    names = "experiment.py, imported/one.py, imported/two.py"
    said = f"resuming with another {names}; what it was trained with is kept in "
    assert again(run_dir, SECOND) == [f"{said}{run_dir / 'former' / '8'}"]
    assert again(run_dir, SECOND) == [] and again(run_dir, FIRST)
    found = contents(run_dir / "former" / "8")
    assert json.loads(found.pop("overrides.json")) == ["--seed", "1"]
    assert found == FIRST

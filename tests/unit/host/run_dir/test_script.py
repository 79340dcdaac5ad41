"""A user's file: run with the modules beside it, and kept with them."""

import importlib
import os
import pickle
import sys

import pytest

from ppo_jax.host.run_dir import script
from ppo_jax.host.run_dir.script import ExperimentError


@pytest.fixture(autouse=True)
def as_before(monkeypatch):
    """Modules and their places are those of this process again."""
    known, places = {*sys.modules}, [*sys.path]
    yield
    sys.path[:] = places
    for name in {*sys.modules} - known:
        del sys.modules[name]


def written(folder, **texts):
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in texts.items():
        (folder / f"{name}.py").write_text(text)
    return folder / "mine.py"


def test_what_a_file_defines_can_be_pickled(tmp_path):
    """Its classes know where they are written."""
    path = written(tmp_path, mine="class Walk:\n    stride = 3\n\nconfig = Walk()\n")
    names = script.run(path)
    assert pickle.loads(pickle.dumps(names["config"])).stride == 3
    assert names["__file__"] == str(path)


@pytest.mark.parametrize("place", [".", "imported"])
def test_modules_beside_it_are_found_whatever_the_folder_is(tmp_path, place):
    path = written(tmp_path, mine="from walking_parts import x\n")
    written(tmp_path / place, walking_parts="x = 3\n")
    assert script.run(path)["x"] == 3


def test_a_file_that_goes_to_its_folder_leaves_the_process_where_it_is(tmp_path):
    """So the directory of a run is the one that was given."""
    goes = "import os\nos.chdir(os.path.dirname(__file__))\nx = os.getcwd()\n"
    path, here = written(tmp_path, mine=goes), os.getcwd()
    assert script.run(path)["x"] == str(tmp_path) and os.getcwd() == here


def test_a_module_of_the_same_name_is_that_of_each_file(tmp_path):
    """And a package is forgotten with all that is in it."""
    for number in (1, 2):
        folder = tmp_path / str(number)
        path = written(folder, mine="import house.room\nx = house.room.x\n")
        written(folder / "house", __init__="", room=f"x = {number}\n")
        assert script.run(path)["x"] == number


def test_what_is_in_use_is_kept(tmp_path):
    """The file, its modules and whole packages; nothing that nobody imported."""
    path = written(
        tmp_path,
        mine="import walking_parts\nimport house.room\n",
        walking_parts="x = 1\n",
        unused="x = 2\n",
    )
    written(tmp_path / "house", __init__="", room="x = 3\n", attic="x = 4\n")
    script.run(path)
    texts = script.texts(path)
    assert texts.keys() == {
        *("experiment.py", "imported/walking_parts.py", "imported/house/__init__.py"),
        *("imported/house/room.py", "imported/house/attic.py"),
    }
    assert texts["imported/house/room.py"] == b"x = 3\n"
    assert texts["experiment.py"] == path.read_bytes()


def test_what_was_kept_is_kept_again(tmp_path):
    """A run directory needs nothing from where it came."""
    path = written(tmp_path / "here", mine="from walking_parts import x\n")
    written(tmp_path / "here", walking_parts="x = 5\n")
    script.run(path)
    texts = script.texts(path)
    for name, text in texts.items():
        kept = tmp_path / "run" / name
        kept.parent.mkdir(parents=True, exist_ok=True)
        kept.write_bytes(text)
    for file in (tmp_path / "here").glob("*.py"):
        file.unlink()
    assert script.run(tmp_path / "run" / "experiment.py")["x"] == 5
    assert script.texts(tmp_path / "run" / "experiment.py") == texts


def test_what_ran_is_kept_whatever_was_written_since(tmp_path):
    """The file and what it imported, as they were; what comes later, as it is."""
    path = written(tmp_path, mine="import walking_parts\n", walking_parts="x = 1\n")
    written(tmp_path, later_parts="y = 1\n")
    script.run(path)
    written(tmp_path, mine="import nothing\n", walking_parts="x = 2\n")
    importlib.import_module("later_parts")
    assert script.texts(path) == {
        "experiment.py": b"import walking_parts\n",
        "imported/walking_parts.py": b"x = 1\n",
        "imported/later_parts.py": b"y = 1\n",
    }


def test_only_what_is_the_users_own_is_kept_of_a_package(tmp_path):
    """No buffers of an editor, environments or links to nowhere."""
    path = written(tmp_path, mine="import house.room\n")
    room = written(tmp_path / "house", room="x = 3\n").with_name("room.py")
    (tmp_path / "house" / ".#room.py").symlink_to("me@here.123")
    (tmp_path / "house" / "gone.py").symlink_to("nowhere.py")
    for folder in (".venv/lib", "env/lib/site-packages/pip", ".git"):
        written(tmp_path / "house" / folder, mine="y = 3\n")
    script.run(path)
    texts = script.texts(path)
    assert texts.pop("experiment.py") == path.read_bytes()
    assert texts == {"imported/house/room.py": room.read_bytes()}


def test_files_are_kept_in_their_own_encoding(tmp_path):
    text = "# -*- coding: latin-1 -*-\nname = 'Müller'\n".encode("latin-1")
    path = tmp_path / "mine.py"
    path.write_bytes(text)
    assert script.run(path)["name"] == "Müller"
    assert script.texts(path) == {"experiment.py": text}


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("x = 1\ny = 1 / 0\n", r"ZeroDivisionError: division by zero\n.*line 2, in"),
        ("def f(:\n", "SyntaxError"),
        ("import sys\nsys.exit(3)\n", "SystemExit: 3"),
        ("from ppo_jax import tems\n", r"ImportError: .*'tems'.*; it has .*terms"),
        ("import ppo_jax\nppo_jax.terms.Valu\n", "'Valu'.*; it has .*Value"),
        ("import nowhere_to_be_found\n", "ModuleNotFoundError: No module named 'nowh"),
        ("import re\nre.compil\n", r"'compil'\n"),
    ],
)
def test_a_file_that_fails_says_where_and_what_there_is(tmp_path, text, said):
    path = written(tmp_path, mine=text)
    with pytest.raises(ExperimentError, match=rf"(?s)mine\.py: .*{said}"):
        script.run(path)


def test_a_path_that_is_no_file_is_said(tmp_path):
    with pytest.raises(ExperimentError, match=r"mine\.py: no such experiment file"):
        script.run(tmp_path / "mine.py")
    with pytest.raises(ExperimentError, match=r"is a folder; expected a Python file$"):
        script.run(tmp_path)
    (tmp_path / "experiment.py").touch()
    with pytest.raises(ExperimentError, match=r"such as .*experiment\.py$"):
        script.run(tmp_path)

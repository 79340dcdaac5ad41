"""What the commands say of themselves, and of each other."""

import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
from runs import ENVIRONMENT, EXPERIMENT, command, session

import ppo_jax
from ppo_jax.__main__ import COMMANDS

OF_FILES = [name for name in COMMANDS if name != "alerts"]


@pytest.fixture(scope="module")
def home(tmp_path_factory):
    home = tmp_path_factory.mktemp("help")
    (home / "mine.py").write_text(EXPERIMENT.format(memory=""))
    return home


@pytest.fixture(scope="module")
def helps(home):
    """The status and the text of every command's help."""
    found = session([[name, "--help"] for name in COMMANDS], home)
    return dict(zip(COMMANDS, found, strict=True))


def package(*words, cwd):
    return subprocess.run(
        [sys.executable, "-m", "ppo_jax", *words],
        capture_output=True,
        text=True,
        env=ENVIRONMENT,
        cwd=cwd,
        timeout=60,
        check=False,
    )


def example(text):
    """The words of the last line, which can be pasted."""
    *_, mark, line = text.splitlines()
    assert mark == "Example:"
    return shlex.split(line.strip())


@pytest.mark.parametrize("name", COMMANDS)
def test_help_says_what_a_command_does_and_how_it_ends(helps, name):
    status, text = helps[name]
    assert status == 0
    assert text.startswith(f"usage: python -m ppo_jax.{name} ")
    assert "\nExit status: " in text
    for option, said in re.findall(r"^  (--[^ ]+.*?)(?:\n {5,}|  +)(.*)", text, re.M):
        assert said, option
    assert example(text)[:3] == ["python", "-m", f"ppo_jax.{name}"]


def test_examples_are_understood(helps, home):
    """Where there is nothing to run them on, that is what is missing."""
    lines = [[name, *example(helps[name][1])[3:]] for name in OF_FILES]
    for line, (status, text) in zip(lines, session(lines, home), strict=True):
        assert status == 2, text
        missing = r": (no such experiment file|no run to be found there)\n"
        assert re.fullmatch(f"error: {re.escape(line[1])}{missing}", text)


def test_an_experiment_has_a_help_of_its_own(home):
    names = ("train", "sweep", "selfcheck")
    found = session([[name, "mine.py", "--help"] for name in names], home)
    for name, (status, text) in zip(names, found, strict=True):
        assert status == 0, text
        assert "--optimizer.learning-rate" in text
        words = ["python", "-m", f"ppo_jax.{name}", "mine.py", "--seed", "1"]
        assert example(text) == words


def test_every_command_is_listed_by_its_own_words(helps, home):
    done = command("__main__", cwd=home)
    assert done.returncode == 0 and done.stderr == ""
    for name, (_, text) in helps.items():
        about = text.split("\n\n")[1]
        assert re.search(f"^  {name} +{re.escape(about)}$", done.stdout, re.M)
    assert " ".join(example(helps["train"][1])) in done.stdout
    with_an_entrance = {
        path.stem
        for path in Path(ppo_jax.__file__).parent.glob("*.py")
        if "@command.entrance" in path.read_text()
    }
    assert with_an_entrance - {"__main__"} == set(COMMANDS)


def test_the_package_runs_its_commands(home):
    done = package("trian", "mine.py", cwd=home)
    said = "error: no command is called 'trian'; the closest is 'train'\n"
    assert (done.returncode, done.stderr) == (2, said)
    done = command("__main__", "train", "nowhere.py")
    said = "error: nowhere.py: no such experiment file\n"
    assert (done.returncode, done.stderr) == (2, said)


def test_nothing_given_is_no_error_of_the_command(home):
    for status, text in session([[name] for name in OF_FILES], home):
        assert status == 2 and "Traceback" not in text
        assert re.search(r"required: (EXPERIMENT|RUN_DIR|FOLDER)[\n,]", text)

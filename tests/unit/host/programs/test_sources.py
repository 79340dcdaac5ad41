"""What a process knows of its code, one doubt at a time."""

import importlib
import subprocess
import sys
import time

import pytest
from newborn import newborn

from ppo_jax.host.programs import sources
from ppo_jax.host.programs.sources import UnknownCode
from ppo_jax.host.run_dir import script


@pytest.fixture(autouse=True)
def process(monkeypatch, tmp_path):
    with newborn(monkeypatch, tmp_path):
        yield


def run(folder, **texts):
    """Writes files, and runs the first of them."""
    for name, text in texts.items():
        (folder / f"{name}.py").write_text(text)
    return script.run(folder / f"{next(iter(texts))}.py")


def is_known():
    try:
        sources.own_texts()
    except UnknownCode:
        return False
    return True


CODE = "def patch():\n    pass\n"


def test_a_file_that_was_run_before_another_counts(tmp_path):
    """As that of an agent to begin with, whose run keeps a file as well."""
    run(tmp_path, own=f"{CODE}config = 1")
    assert not is_known()
    run(tmp_path, plain="config = 1")
    assert not is_known()


def test_a_module_that_gave_way_to_another_one_counts(tmp_path):
    """A run keeps the modules beside its experiment, under the same names."""
    for place, text in (("first", CODE), ("second", "size = 2")):
        (tmp_path / place).mkdir()
        run(tmp_path / place, own="import helpers", helpers=text)
    assert sys.modules["helpers"].size == 2
    assert not is_known()


def test_the_same_file_may_be_run_again(tmp_path):
    for text in ("config = 1", "config = 1", "config = 2"):
        run(tmp_path, plain=text)
        assert sources.own_texts() == [text]


def test_code_without_a_file_is_not_known(monkeypatch):
    """That of a notebook, or of `python -c`, may have changed any module."""
    assert is_known()
    monkeypatch.delattr(sys.modules["__main__"], "__file__")
    assert not is_known()


@pytest.mark.parametrize(
    "text",
    [
        "import unheard_of",
        "import unheard_of as numpy",
        "from unheard_of import ID",
        "from unheard_of.deep import ID",
        "ID = importlib.import_module('unheard_of').ID",
    ],
)
def test_a_package_that_is_not_known_is_not_for_its_constants(tmp_path, text):
    """Whoever imports it has it do whatever it does."""
    place = tmp_path / "site-packages"
    (place / "unheard_of").mkdir(parents=True)
    (place / "unheard_of" / "__init__.py").write_text("ID = 'Mine-v0'\n")
    (place / "unheard_of" / "deep.py").write_text("ID = 'Mine-v0'\n")
    sys.path.insert(0, str(place))
    run(tmp_path, own=f"import importlib, sys\n{text}\n")
    assert not is_known()


@pytest.mark.parametrize(
    "text",
    [
        "import runpy; done = runpy.run_module('keyword')",
        "done = exec('pass')",
        "done = setattr(numpy, 'unused', 1)",
        "done = vars(numpy).update(unused=1)",
        "done = [print(end='') for _ in range(2)]",
        "from os import getenv as str; size = str('SIZE')",
    ],
)
def test_what_is_called_to_name_a_value_may_do_anything(tmp_path, text):
    run(tmp_path, own=f"import numpy\n{text}\n")
    assert not is_known()


PLAIN = """
import dataclasses, functools, math
from pathlib import Path
import jax.numpy as jnp
import numpy as np
import optax
from ppo_jax import Config, envs, networks
from sizes import SIZE

PLACE = Path(__file__).parent / "sizes.py"
SIZES = tuple(max(SIZE, n) for n in range(3))
ANGLE, RATE = math.log(2.0), np.float32(1e-3)
TANH = functools.partial(jnp.clip, max=1.0)
SCHEDULE = optax.linear_schedule(1.0, 0.0, 10)
base = Config(envs.make("CartPole-v1"), network=networks.ActorCritic())
config = dataclasses.replace(base, gamma=0.5)
"""


def test_what_experiments_say_of_what_they_train_is_known(tmp_path):
    run(tmp_path, own=PLAIN, sizes="SIZE = 2")
    assert is_known()


@pytest.mark.parametrize("name", sorted(sources.PACKAGES - {"ppo_jax"}))
def test_a_namesake_of_a_known_package_is_ones_own(tmp_path, name):
    file = str(tmp_path / f"{name}.py")
    assert sources._is_own(name, file)
    assert not sources._is_own(name, f"/usr/lib/python3/site-packages/{name}.py")


def test_code_that_was_not_there_is_not_as_here(tmp_path):
    """As a hook that another folder of packages brings."""
    before = sources.code()
    assert sources.is_as_here(before)
    place = tmp_path / "site-packages"
    place.mkdir()
    (place / "hook.py").write_text("")
    sys.path.insert(0, str(place))
    importlib.import_module("hook")
    assert not sources.is_as_here(before)


@pytest.mark.parametrize("name", sources.HOOKS)
def test_a_hook_of_python_that_is_gone_is_no_longer_here(tmp_path, monkeypatch, name):
    """Other modules may not have been imported yet; these always are."""
    place = tmp_path / "site-packages"
    place.mkdir()
    (place / f"{name}.py").write_text("")
    monkeypatch.delitem(sys.modules, name, raising=False)
    sys.path.insert(0, str(place))
    importlib.import_module(name)
    before = sources.code()
    assert sources.is_as_here(before)
    monkeypatch.delitem(sys.modules, name)
    assert not sources.is_as_here(before)


def test_a_process_began_when_it_was_started():
    """And not when it had imported what asks for that."""
    before = time.time()
    with subprocess.Popen(["sleep", "60"]) as process:
        assert before - 0.1 < sources.begun(process.pid) < time.time() + 0.1
        process.kill()
    assert sources.begun() < before

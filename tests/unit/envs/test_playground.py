"""Environments of MuJoCo Playground."""

import re

import jax
import pytest
from runs import session

from ppo_jax.component import numbers
from ppo_jax.envs.playground import Playground
from ppo_jax.host.run_dir import experiment

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")


MISSING = """
import sys
sys.modules["mujoco_playground"] = None
from ppo_jax import Config
config = Config("playground/CheetahRun")
"""


def test_a_suite_that_is_not_installed_is_an_error(tmp_path):
    """As a user is told."""
    (tmp_path / "the.py").write_text(MISSING)
    ((status, text),) = session([["train", "the.py"]], tmp_path)
    assert status == 2 and "Traceback" not in text
    assert text.startswith("error: the.py: ValueError: Playground.id: ")
    assert "which is not installed: pip install 'ppo_jax[playground]'" in text


@pytest.fixture(scope="module")
def suite():
    return pytest.importorskip("mujoco_playground")


@pytest.fixture(autouse=True)
def lenient():
    """The suite adds axes as it likes."""
    with jax.numpy_rank_promotion("allow"):
        yield


WRONG = [
    ("CartpoleBalanc", {}, ValueError, "the closest is 'CartpoleBalance'"),
    ("Go1Getup", {}, ValueError, "'Go1Getup' is made of models that playground downl"),
    ("CartpoleBalance", {"episode_lenth": 9}, TypeError, "'episode_length'"),
    ("CartpoleBalance", {"episode_length": 9.5}, TypeError, "expected int"),
    ("CartpoleBalance", {"vision": True}, TypeError, "no field is called 'vision'"),
    ("CartpoleBalance", {"sim_dt": 0.005}, ValueError, "params.sim_dt: cannot be set"),
]


@pytest.mark.parametrize(("env_id", "params", "error", "said"), WRONG)
def test_what_there_is_not_is_an_error(suite, env_id, params, error, said):
    """Nothing is downloaded."""
    with pytest.raises(error, match=re.escape(said)):
        Playground(env_id, params)


@pytest.fixture
def path(tmp_path):
    path = tmp_path / "the.py"
    line = "config = Config('playground/CartpoleBalance')"
    path.write_text(f"from ppo_jax import Config\n{line}\n")
    return path


def test_numbers_are_given_on_the_command_line(suite, path):
    """Factors and settings that the experiment does not name."""
    given = ("--env.physics.gravity", "0.5", "--env.params.episode-length", "5e1")
    config = experiment.load(path, [*given])
    assert numbers(config)["env.physics.gravity"] == 0.5
    assert config.env.max_episode_steps == 50


MISTAKES = {
    "--env.id CartpolBalance": "the closest is 'CartpoleBalance'",
    "--env.id Go1Getup": "'Go1Getup' is made of models that playground downl",
    "--env.params.episode-length 0": "episode_length: expected at least 1, got 0",
    "--env.params.sim-dt 0.005": "Playground.params.sim_dt: cannot be set: no reset or",
    "--env.physics.friction 0.5": "Playground.physics.friction: cannot be set: no",
    "--env.physics.mass 0": "Physics.mass: expected a number > 0, or None, got 0.0",
    "--env.physics.spread 0.1": "Physics.spread: expected one of gravity, friction",
}


def test_a_mistake_is_told(suite, path, tmp_path):
    """Nothing is made of it."""
    lines = [["train", path, *line.split()] for line in MISTAKES]
    told = session(lines, tmp_path)
    for (status, text), said in zip(told, MISTAKES.values(), strict=True):
        text = re.sub(r"[\s│]+", " ", text)  # In a box.
        assert status == 2 and said in text and "Traceback" not in text, text
    assert [*tmp_path.iterdir()] == [path]

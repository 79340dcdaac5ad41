"""Environments of MuJoCo Playground."""

import re

import jax
import pytest
from runs import session

from ppo_jax.envs.playground import Playground

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

"""Environments of Brax."""

import re

import jax
import pytest
from runs import session

from ppo_jax import envs
from ppo_jax.envs.brax import Brax
from ppo_jax.envs.physics import Physics

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")


MISSING = """
import sys
sys.modules["brax"] = None
from ppo_jax import Config
config = Config("brax/ant")
"""


def test_a_suite_that_is_not_installed_is_an_error(tmp_path):
    """As a user is told."""
    (tmp_path / "the.py").write_text(MISSING)
    ((status, text),) = session([["train", "the.py"]], tmp_path)
    assert status == 2 and "Traceback" not in text
    assert text.startswith("error: the.py: ValueError: Brax.id: ")
    assert "which is not installed: pip install 'ppo_jax[brax]'" in text


@pytest.fixture(scope="module")
def suite():
    return pytest.importorskip("brax")


@pytest.fixture(autouse=True)
def lenient():
    """The suite adds axes as it likes."""
    with jax.numpy_rank_promotion("allow"):
        yield


FRICTION = Physics(friction=0.5)
WRONG = [
    ({"id": "antt"}, ValueError, "Brax.id: no environment of brax is called 'antt'"),
    ({"id": "ant", "backend": "sprin"}, ValueError, "the closest is 'spring'"),
    ({"id": "ant", "params": {"healthy_rewar": 1}}, TypeError, "'healthy_reward'"),
    ({"id": "ant", "params": {"debug": True}}, TypeError, "'debug'"),
    ({"id": "fast", "physics": FRICTION}, ValueError, "friction: cannot be set"),
    ({"id": "fast", "params": {"episode_length": 0}}, ValueError, "at least 1"),
]


@pytest.mark.parametrize(("given", "error", "said"), WRONG)
def test_what_there_is_not_is_an_error(suite, given, error, said):
    with pytest.raises(error, match=re.escape(said)):
        Brax(**given)


def test_the_cheapest_environment_keeps_its_promises(suite):
    envs.check(Brax("fast", {"episode_length": 9, "action_repeat": 2}), steps=20)

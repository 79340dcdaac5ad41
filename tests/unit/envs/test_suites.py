"""Environments by id."""

import re
from typing import Any

import gymnasium
import pytest
from runs import session

from ppo_jax import Config, envs
from ppo_jax.envs.suites import SUITES


def test_an_id_names_its_suite_or_is_one_of_gymnax():
    assert envs.make("gymnax/CartPole-v1") == envs.Gymnax("CartPole-v1")
    assert Config("gymnax/Pendulum-v1").env == envs.make("Pendulum-v1")


WRONG: list[tuple[Any, type[Exception], str]] = [
    ("gymnaks/CartPole-v1", ValueError, "the closest is 'gymnax'"),
    ("/CartPole-v1", ValueError, "no suite is called ''"),
    ("gymnax/CartPol-v1", ValueError, "the closest is 'CartPole-v1'"),
    ("Hopper-v4", ValueError, "does, and gymnasium/HalfCheetah-v5"),
    (3, TypeError, "expected an Env or an id, got 3"),
    (
        gymnasium.make("CartPole-v1"),
        TypeError,
        "'gymnasium/CartPole-v1', yours with gymnax.register or gymnasium.register",
    ),
    (envs.Gymnax, TypeError, "a class has to be called: Gymnax(…)"),
]


@pytest.mark.parametrize(("env", "error", "said"), WRONG)
def test_what_is_no_environment_is_an_error(env, error, said):
    with pytest.raises(error, match=re.escape(said)):
        envs.make(env)


BROUGHT = ("craftax", "jumanji", "xminigrid")
"""Suites whose extra and package have their name."""


def test_a_suite_that_is_not_installed_is_told(tmp_path):
    """R-E1: with what to install, by the command; a file hides what is installed."""
    lines = []
    for suite in BROUGHT:
        missing = f"raise ModuleNotFoundError('hidden', name={suite!r})"
        (tmp_path / f"{suite}.py").write_text(missing)
        path, (module, kind) = tmp_path / f"on_{suite}.py", SUITES[suite]
        env = f"from {module} import {kind}\nconfig = Config({kind}())\n"
        path.write_text(f"from ppo_jax import Config\n{env}")
        lines.append(["train", path])
    told = session(lines, tmp_path)
    for suite, (status, text) in zip(BROUGHT, told, strict=True):
        assert status == 2 and "Traceback" not in text
        assert f"needs {suite}, which is not installed: pip install" in text
        assert f"'ppo_jax[{suite}]'" in text

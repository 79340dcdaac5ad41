"""Environments by id."""

import re
from typing import Any

import pytest

from ppo_jax import Config, envs


def test_an_id_names_its_suite_or_is_one_of_gymnax():
    assert envs.make("gymnax/CartPole-v1") == envs.Gymnax("CartPole-v1")
    assert Config("gymnax/Pendulum-v1").env == envs.make("Pendulum-v1")


WRONG: list[tuple[Any, type[Exception], str]] = [
    ("gymnaks/CartPole-v1", ValueError, "the closest is 'gymnax'"),
    ("/CartPole-v1", ValueError, "no suite is called ''"),
    ("gymnax/CartPol-v1", ValueError, "the closest is 'CartPole-v1'"),
    (3, TypeError, "expected an Env or an id, got 3"),
    (envs.Gymnax, TypeError, "a class has to be called: Gymnax(…)"),
]


@pytest.mark.parametrize(("env", "error", "said"), WRONG)
def test_what_is_no_environment_is_an_error(env, error, said):
    with pytest.raises(error, match=re.escape(said)):
        envs.make(env)

"""Environments by id: `suite/name`, and a name alone for one of gymnax.

A suite is imported when one of its environments is made, and not before.
"""

import importlib
from typing import NamedTuple

from ppo_jax.component.suggestion import uncalled, unknown
from ppo_jax.envs.env import Env


class Suite(NamedTuple):
    """The place of a suite: a module, and in it a class whose first field is the id."""

    module: str
    kind: str


PLAIN = "gymnax"
"""The suite of ids without a suite's name."""
SUITES = {
    PLAIN: Suite("ppo_jax.envs.gymnax", "Gymnax"),
    "brax": Suite("ppo_jax.envs.brax", "Brax"),
    "playground": Suite("ppo_jax.envs.playground", "Playground"),
    "craftax": Suite("ppo_jax.envs.craftax", "Craftax"),
    "jumanji": Suite("ppo_jax.envs.jumanji", "Jumanji"),
    "xminigrid": Suite("ppo_jax.envs.xminigrid", "XMiniGrid"),
    "gymnasium": Suite("ppo_jax.envs.gymnasium", "Gymnasium"),
}
"""Suites by the name that ids begin with."""


def make(env: Env | str) -> Env:
    """Makes an environment from an id, `suite/name`; returns an `Env` as it is.

    Raises:
        ValueError: If there is no such suite, it is not installed, or it does not know
            the name; the message says what to install, or names the closest one.
        TypeError: If it is neither an id nor an `Env`.

    >>> make("CartPole-v1") == make("gymnax/CartPole-v1")
    True
    """
    if isinstance(env, str):
        suite, name = env.split("/", 1) if "/" in env else (PLAIN, env)
        if suite not in SUITES:
            raise ValueError(f"env = {env!r}: {unknown('suite', suite, SUITES)}")
        module, kind = SUITES[suite]
        return getattr(importlib.import_module(module), kind)(name)
    if not isinstance(env, Env):
        raise TypeError(
            f"env: expected an Env or an id, got {env!r}{uncalled(env)}; those of "
            "gymnax and gymnasium have ids, 'CartPole-v1' and 'gymnasium/CartPole-v1', "
            "yours with gymnax.register or gymnasium.register"
        )
    return env

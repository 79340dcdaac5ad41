"""Environments of Brax, on any of its four backends."""

import functools
import importlib
import inspect
import warnings
from collections.abc import Mapping
from types import SimpleNamespace
from typing import Any

import jax
import jax.numpy as jnp

from ppo_jax.component import component
from ppo_jax.component.suggestion import unknown
from ppo_jax.envs import parameters
from ppo_jax.envs.deferred import brought
from ppo_jax.envs.physics import MJX, Bodies, Powers, Simulation, changed
from ppo_jax.errors import UserError

BACKENDS = ("generalized", "mjx", "positional", "spring")
LENGTHS = {"episode_length": 1000, "action_repeat": 1}
"""Parameters that Brax leaves to the caller of an environment, with its defaults."""
SYSTEM: Powers = {
    "gravity": {"gravity": 1} | MJX["gravity"],
    "friction": MJX["friction"],
    "mass": {"link.inertia.mass": 1, "link.inertia.i": 1} | MJX["mass"],
}
"""Fields of a system by property: those of an `mjx` model, and of other backends."""


@component
class Brax(Bodies):
    """An environment of Brax.

    Its parameters are arguments of its class, and `episode_length` and `action_repeat`.
    A `ResetPool` around it saves the reset in every step. The pool should have as many
    starts as episodes of one environment end in a rollout.

    Attributes:
        backend: The simulation: `generalized`, `mjx`, `positional` or `spring`.

    >>> Brax("ant", {"healthy_reward": 0.5}, backend="spring")  # doctest: +SKIP
    Brax(id='ant', params={'healthy_reward': 0.5}, physics=..., backend='spring')
    """

    backend: str = "generalized"

    def validate(self) -> None:
        """Raises a `ValueError` for an unknown backend, or as the base class does."""
        if self.backend not in BACKENDS:
            message = unknown("backend", self.backend, BACKENDS)
            raise ValueError(f"Brax.backend: {message}")
        super().validate()

    def _types(self) -> Mapping[str, Any]:
        arguments = inspect.signature(_class(self.id)).parameters.values()
        types = {x.name: type(x.default) for x in arguments if x.name != "backend"}
        return types | dict.fromkeys(LENGTHS, int)

    def _load(self) -> Simulation:
        return _load(self.id, self.backend, parameters.structure(self.params))

    def _made(self, drawn: Mapping[str, Any]) -> Any:
        given = parameters.given(self.params).items()
        kept = {f"_{name}": x for name, x in given if not isinstance(x, int | str)}
        env = self._load().env
        if hasattr(env, "sys"):
            kept["sys"] = self.physics.world(env.sys, drawn, SYSTEM)
        return changed(env, **kept)

    def _posed(self, suite: Any) -> tuple[Any, dict[str, Any]]:
        system = getattr(self._load().env, "sys", None)
        if system is None:
            raise UserError(f"Brax.id: {self.id!r} has no bodies that could be drawn")
        state = suite.pipeline_state
        return system.mj_model, {"qpos": state.q, "qvel": state.qd}


def _class(env_id: str) -> Any:
    """Returns the class of an environment.

    Raises:
        ValueError: For an unknown id.
    """
    known = brought("brax.envs", extra="brax", wanted=f"Brax.id: {env_id!r}")._envs
    if env_id not in known:
        message = unknown("environment of brax", env_id, known)
        raise ValueError(f"Brax.id: {message}")
    return known[env_id]


@functools.cache
def _load(env_id: str, backend: str, given: tuple[tuple[str, Any], ...]) -> Simulation:
    lengths = LENGTHS | {name: x for name, x in given if name in LENGTHS}
    others = {name: x for name, x in given if name not in LENGTHS}
    _mend_water()
    # The first call may be inside a trace, whose tracers must not be cached.
    with jax.ensure_compile_time_eval(), warnings.catch_warnings(action="ignore"):
        env = _class(env_id)(backend=backend, **others)
    return Simulation(env, **lengths)


def _mend_water() -> None:
    """Mends fluids of Brax 0.14.2, which use the old name of an argument of `clip`."""
    water: Any = importlib.import_module("brax.fluid")
    clip = {"clip": lambda x, a_min: jnp.maximum(x, a_min)}
    water.jp = SimpleNamespace(**vars(jnp) | clip)

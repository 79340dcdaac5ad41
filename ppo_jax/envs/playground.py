"""Environments of MuJoCo Playground, simulated by `mjx` in JAX."""

import functools
from collections.abc import Mapping
from typing import Any

import jax

from ppo_jax.component import component
from ppo_jax.component.suggestion import unknown
from ppo_jax.envs import parameters
from ppo_jax.envs.deferred import brought
from ppo_jax.envs.physics import MJX, Bodies, Simulation, changed

POSE = ("qpos", "qvel", "mocap_pos", "mocap_quat")
"""Fields of a state's data that are drawn."""
WARP = {"impl", "vision", "naconmax", "naccdmax", "njmax"}
"""Settings that choose Warp, which needs a GPU, or that only Warp reads."""


@component
class Playground(Bodies):
    """An environment of MuJoCo Playground.

    Its parameters are settings of its `config`, `episode_length` and `action_repeat`
    among them. Settings within others are nested: `{"reward_config": {"scales":
    {"energy": 0.0}}}`.

    Put a `ResetPool` of one start around tasks of the control suite: none ends by
    itself, so a rollout of up to 1000 steps needs no more, and a reset computes forces
    as a step does, in `CheetahRun` 200 steps of them.

    >>> Playground("CartpoleBalance", params={"episode_length": 9})  # doctest: +SKIP
    Playground(id='CartpoleBalance', params={'episode_length': 9}, physics=...)
    """

    def _types(self) -> Mapping[str, Any]:
        return _types(_config(self.id).to_dict())

    def _load(self) -> Simulation:
        return _load(self.id, parameters.structure(self.params))

    def _made(self, drawn: Mapping[str, Any]) -> Any:
        env = self._load().env
        model = self.physics.world(env.mjx_model, drawn, MJX)
        config = env._config.copy_and_resolve_references()
        with config.unlocked(), config.ignore_type():
            config.update(parameters.given(self.params))
        return changed(env, _mjx_model=model, _config=config)

    def _posed(self, suite: Any) -> tuple[Any, dict[str, Any]]:
        pose = {name: getattr(suite.data, name) for name in POSE}
        return self._load().env.mj_model, pose


def _suites(env_id: str) -> Any:
    """Imports the package with all of its suites, for an environment of it."""
    wanted = f"Playground.id: {env_id!r}"
    return brought("mujoco_playground", extra="playground", wanted=wanted)


def _config(env_id: str) -> Any:
    """Returns the default settings of an environment.

    Raises:
        ValueError: For an unknown id.
    """
    package = _suites(env_id)
    suites = package.dm_control_suite, package.locomotion, package.manipulation
    known = [name for suite in suites for name in suite.ALL_ENVS]
    if env_id not in known:
        message = unknown("environment of playground", env_id, known)
        raise ValueError(f"Playground.id: {message}")
    return package.registry.get_default_config(env_id)


def _types(config: Mapping[str, Any]) -> dict[str, Any]:
    return {
        name: _types(value) if isinstance(value, dict) else type(value)
        for name, value in config.items()
        if name not in WARP
    }


@functools.cache
def _load(env_id: str, given: tuple[tuple[str, Any], ...]) -> Simulation:
    package = _suites(env_id)
    _require_models(package, env_id)
    config = _config(env_id)
    config.update_from_flattened_dict({"impl": "jax"} | dict(given))
    # The first call may be inside a trace, whose tracers must not be cached.
    with jax.ensure_compile_time_eval():
        env = package.registry.load(env_id, config=config)
    return Simulation(env, config.episode_length, config.action_repeat)


def _require_models(package: Any, env_id: str) -> None:
    """Raises a `ValueError` if an environment would have to download its models."""
    there = package._src.mjx_env.MENAGERIE_PATH.exists()
    if there or env_id in package.dm_control_suite.ALL_ENVS:
        return
    line = f"import mujoco_playground as m; m.registry.load({env_id!r})"
    message = f"{env_id!r} is made of models that playground downloads, once"
    raise ValueError(f'Playground.id: {message}: python -c "{line}"')

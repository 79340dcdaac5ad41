"""Environments of gymnasium, whose steps simulators on the host take."""

import functools
import importlib
import inspect
import sys
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

import cloudpickle
import jax
import jax.numpy as jnp

from ppo_jax.component import component
from ppo_jax.component.suggestion import unknown
from ppo_jax.envs import parameters, spaces, worker
from ppo_jax.envs.deferred import brought
from ppo_jax.envs.env import ActionSpace, Env, Step
from ppo_jax.envs.opengl import unmet
from ppo_jax.envs.outline import Outline
from ppo_jax.envs.parameters import Parameters
from ppo_jax.envs.simulators import Simulators
from ppo_jax.envs.spaces import Observations
from ppo_jax.errors import Misfit, brief, own_lines
from ppo_jax.types import Array, Key, PyTree

LIMIT = "max_episode_steps"
"""The argument of `gymnasium.make` after which it truncates an episode."""
ON_THE_HOST = (
    "simulators on the host take its steps, and no program can; what is to be around "
    "it is a wrapper of gymnasium, registered with it"
)


@component
class Gymnasium(Env):
    """An environment of gymnasium; make yours known with `gymnasium.register`.

    Programs know its shapes alone. Its steps are taken on the host, in processes that
    are told no more than the id and the parameters: what they need beside that is to be
    importable, or defined in the file that registers it. Whole numbers, as of
    `Discrete` observations, are seen as ones among zeros.

    Of the info, `action_mask` says which actions are allowed, if the first reset has
    one, and `cost` is a step's.

    Attributes:
        id: What gymnasium calls it.
        params: What it is made with, by name. Floats are numbers; members of a
            population may have others.

    Raises:
        ValueError: At construction, for an id that gymnasium does not know, spaces that
            have no counterpart, what is not installed, or what cannot be made, reset
            and stepped once.
        TypeError: At construction, for a parameter that there is not.

    >>> env = Gymnasium("CartPole-v1", params={"max_episode_steps": 9})
    >>> env.action_space, env.max_episode_steps
    (Discrete(n=2), 9)
    """

    id: str = "CartPole-v1"
    params: Parameters | Mapping[str, Any] = Parameters()

    def validate(self) -> None:
        """Raises an error for what cannot be made; completes parameters."""
        with _named(self.id):
            types = _types(_spec(self.id))
        given = parameters.given(self.params)
        params = parameters.kind(self.id, types)(**given)
        object.__setattr__(self, "params", params)
        self._load()

    @property
    def action_space(self) -> ActionSpace:
        return self._load().action_space

    @property
    def max_episode_steps(self) -> int | None:
        return self._load().limit

    @property
    def min_steps_to_truncation(self) -> int:
        return self._load().limit or 1

    @property
    def simulated(self) -> bool:
        return True

    @property
    def outline(self) -> Env:
        return Outline(self)

    def reset(self, key: Key) -> tuple[PyTree, PyTree]:
        """Returns zeros of the right shapes, which simulators replace."""
        loaded = self._load()
        shapes = loaded.observations.shapes
        mask = jnp.ones(sum(loaded.choices), bool) if loaded.choices else ()
        return jax.tree.map(lambda x: jnp.zeros(x.shape, x.dtype), shapes), mask

    def action_mask(self, state: PyTree) -> Array | None:
        return state if self._load().choices else None

    def step(self, key: Key, state: PyTree, action: Array) -> Step:
        """There is none for programs.

        Raises:
            Misfit: Always.
        """
        raise Misfit(f"gymnasium/{self.id}: {ON_THE_HOST}")

    def simulators(
        self,
        members: Sequence["Gymnasium"],
        each: int,
        processes: int,
        render_mode: str | None = None,
    ) -> Simulators:
        loaded = self._load()
        drawn = {} if render_mode is None else {"render_mode": render_mode}
        return Simulators(
            f"gymnasium/{self.id}",
            [_maker(self.id, parameters.given(one.params) | drawn) for one in members],
            each,
            loaded.observations,
            functools.partial(spaces.moves, loaded.actions),
            processes,
            loaded.choices,
        )

    def _load(self) -> "_Loaded":
        """Returns everything that does not depend on numbers."""
        spec = _spec(self.id)
        structure = parameters.structure(self.params)
        return _load(self.id, structure, spec.entry_point, repr(spec))


class _Loaded(NamedTuple):
    action_space: ActionSpace
    actions: Any
    """Gymnasium's space of them."""
    observations: Observations
    choices: tuple[int, ...]
    """Number of choices of each part of an action; empty without action masks."""
    limit: int | None


@functools.cache
def _load(
    env_id: str, structure: tuple[tuple[str, Any], ...], entry: Any, spec: str
) -> _Loaded:
    """Makes an environment, and takes a step; returns spaces, choices and time limit.

    Args:
        env_id: Its id, under which another one may be registered later.
        structure: What it is made with.
        entry: What makes it.
        spec: All that gymnasium knows of it.
    """
    with _named(env_id):
        env = _maker(env_id, dict(structure))()
        first = env.reset(seed=0)
    name = f"Gymnasium.id: {env_id!r}"
    action_space = spaces.action_space(name, env.action_space)
    loaded = _Loaded(
        action_space,
        env.action_space,
        spaces.observations(name, env.observation_space),
        spaces.masked(name, action_space, first),
        env.spec.max_episode_steps,
    )
    with _named(env_id):
        share = worker.Share([lambda: env], loaded.observations.reads, loaded.choices)
        share.step(spaces.first_moves(loaded.actions, first[1], loaded.choices))
        share.close()
    return loaded


def _maker(env_id: str, given: Mapping[str, Any]) -> Callable[[], Any]:
    """Makes an environment, here or in a process that imports nothing of this one.

    What is defined in a file that was run, and is no module, goes there by value, and
    is registered there.
    """
    import gymnasium

    spec, files = _spec(env_id), [*filter(_was_run, [*sys.modules.values()])]
    for file in files:
        cloudpickle.register_pickle_by_value(file)
    names = {file.__name__ for file in files}
    own = {k: x for k, x in gymnasium.registry.items() if _home(x) in names}
    plain: Any = {
        k: x if isinstance(x, int | str) else float(x) for k, x in given.items()
    }

    def make() -> Any:
        gymnasium.registry.update(own)
        return gymnasium.make(spec, disable_env_checker=True, **plain)

    return make


def _was_run(module: Any) -> bool:
    """Returns whether a module is a file that was run, which nobody can import."""
    found = getattr(module, "__spec__", ()), hasattr(module, "__file__")
    return found == (None, True) and module.__name__ != "__main__"


def _home(spec: Any) -> str | None:
    """Returns the name of the module whose code makes an environment."""
    entry = getattr(spec.entry_point, "func", spec.entry_point)
    return getattr(entry, "__module__", None)


def _types(spec: Any) -> dict[str, type]:
    """Returns the types of the arguments that an environment is made with."""
    from gymnasium.envs.registration import load_env_creator

    entry = spec.entry_point
    creator = load_env_creator(entry) if isinstance(entry, str) else entry
    arguments = inspect.signature(creator).parameters.values()
    known = {x.name: type(x.default) for x in arguments}
    return known | {k: type(x) for k, x in spec.kwargs.items()} | {LIMIT: int}


def _spec(env_id: str) -> Any:
    """Returns gymnasium's specification of an environment."""
    import gymnasium

    module, _, name = env_id.rpartition(":")
    if module:
        importlib.import_module(module)
    if name not in gymnasium.registry:
        newest_first = reversed(gymnasium.registry)
        message = unknown("environment of gymnasium", name, newest_first)
        raise Misfit(
            f"Gymnasium.id: {message}; yours gets an id with gymnasium.register"
        )
    return gymnasium.registry[name]


@contextmanager
def _named(env_id: str) -> Iterator[None]:
    """Says of which environment it is that it cannot be had.

    Raises:
        ValueError: If it cannot.
    """
    message = f"Gymnasium.id: {env_id!r}"
    try:
        with warnings.catch_warnings(action="ignore"):
            yield
    except Misfit:
        raise
    except Exception as error:
        cause = error.__cause__ or error
        if isinstance(cause, ModuleNotFoundError) and cause.name == "mujoco":
            brought("mujoco", extra="mujoco", wanted=message)
        told = f"{brief(error)}{unmet(cause)}{own_lines(error)}"
        raise ValueError(f"{message}: {told}") from error

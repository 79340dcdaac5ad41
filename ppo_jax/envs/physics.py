"""Common parts of environments of rigid bodies, whatever suite simulates them.

A simulation is an object with `reset(key)` and `step(state, action)`, which give states
with an observation, a reward and whether the episode ended by itself. Suites have
wrappers of their own that restart it. They are not used: with them all episodes begin
alike, and at a time limit they show the start of the next episode instead of the last
observation.
"""

import copy
import dataclasses
import functools
from collections.abc import Mapping
from typing import Annotated, Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from ppo_jax.arrays import tree
from ppo_jax.component import children, component, numbers, require
from ppo_jax.component.bounds import Bound, Finite, Positive
from ppo_jax.envs import parameters, scenes
from ppo_jax.envs.check.traces import unread
from ppo_jax.envs.env import Box, Env, Step, outcome, strong
from ppo_jax.envs.parameters import Parameters
from ppo_jax.errors import missing
from ppo_jax.types import Array, Key, PyTree

Powers = dict[str, dict[str, int]]
"""Numbers of a model and the power of the factor that multiplies them, by factor."""

MJX: Powers = {
    "gravity": {"opt.gravity": 1},
    "friction": {"geom_friction": 1, "pair_friction": 1},
    "mass": {
        "body_mass": 1,
        "body_inertia": 1,
        "body_subtreemass": 1,
        "body_invweight0": -1,
        "dof_invweight0": -1,
        "tendon_invweight0": -1,
    },
}
"""Numbers of a model of `mjx`."""


@component
class Physics:
    """Factors that change the properties of a world; None: those of the suite.

    Attributes:
        gravity: Factor of the acceleration by gravity.
        friction: Factor of the coefficients of friction between bodies that touch.
        mass: Factor of masses and, with them, inertias.
        spread: Every episode has a world of its own: each factor that is set is
            multiplied by a number drawn uniformly from 1 − spread to 1 + spread.

    Raises:
        ValueError: At construction, for a spread without a factor.

    >>> Physics(friction=1.0, spread=0.3)
    Physics(gravity=None, friction=1.0, mass=None, spread=0.3)
    """

    gravity: Finite[float | None] = None
    friction: Positive[float | None] = None
    mass: Positive[float | None] = None
    spread: Annotated[
        float | None, Bound("a number in [0, 1)", lambda x: 0 <= x < 1)
    ] = None

    def validate(self) -> None:
        """Raises a `ValueError` for a spread without a factor."""
        expected = f"one of {', '.join(MJX)} beside it: 1.0 is as the suite has it"
        idle = self.spread is not None and not self.factors()
        require(not idle, "Physics.spread", self.spread, expected)

    def factors(self) -> dict[str, Any]:
        """Returns the factors that are set, by name."""
        given = children(self)
        return {name: given[name] for name in MJX if given[name] is not None}

    def draw(self, key: Key) -> dict[str, Array]:
        """Draws an episode's multipliers of factors, by name; {} without a spread."""
        if self.spread is None:
            return {}
        names = list(self.factors())
        drawn = 1 + self.spread * jax.random.uniform(key, (len(names),), minval=-1)
        return dict(zip(names, drawn, strict=True))

    def world(self, model: Any, drawn: Mapping[str, Array], powers: Powers) -> Any:
        """Returns a model, changed by the factors and by those drawn for an episode."""
        for name, factor in self.factors().items():
            factor = factor * drawn.get(name, 1.0)
            model = model.tree_replace(
                {
                    path: functools.reduce(getattr, path.split("."), model)
                    * factor**power
                    for path, power in powers[name].items()
                }
            )
        return model


@jax.tree_util.register_static
@dataclasses.dataclass(frozen=True)
class Empty:
    """Stands for an array without elements, which no checkpoint can hold."""

    shape: tuple[int, ...]
    dtype: Any


class Simulation(NamedTuple):
    """A simulation and its lengths, which are the same for all numbers."""

    env: Any
    episode_length: int
    """Steps of the simulation to the end of an episode that does not end by itself."""
    action_repeat: int
    """Steps of the simulation per action."""


class Episode(NamedTuple):
    """State of `Bodies`."""

    suite: PyTree
    """The suite's own state; `Empty` for arrays without elements."""
    steps: Array
    """Actions of this episode so far, int32 scalar."""
    drawn: dict[str, Array]
    """This episode's multipliers of the factors, float32 scalars by name."""


@component
class Bodies(Env):
    """A suite's environment of rigid bodies.

    An episode terminates when the simulation reports that it is done, and is truncated
    after the suite's number of steps. An action that is repeated earns the sum of the
    rewards, up to an end.

    Attributes:
        id: The suite's name of the environment.
        params: Parameters that are set, by name.
        physics: Factors that change the properties of its world.

    Raises:
        ValueError: At construction, for an id that the suite does not know, if the
            suite is not installed, or for a number that no step depends on.
        TypeError: At construction, for an unknown parameter.
    """

    id: str
    params: Parameters | Mapping[str, Any] = Parameters()
    physics: Physics = Physics()

    def validate(self) -> None:
        """Completes parameters; raises an error for an unknown id or parameter."""
        given = parameters.given(self.params)
        made = parameters.kind(self.id, self._types())(**given)
        object.__setattr__(self, "params", made)
        _, *counts = self._load()._asdict().items()
        owner = type(self).__name__
        for name, count in counts:
            require(count >= 1, f"{owner}.params.{name}", count, "at least 1")
        for name in _idle(self):
            message = f"no reset or step of {self.id!r} depends on it"
            raise ValueError(f"{owner}.{name}: cannot be set: {message}")

    @property
    def action_space(self) -> Box:
        size = self._load().env.action_size
        return Box((-1.0,) * size, (1.0,) * size)

    @property
    def min_steps_to_truncation(self) -> int:
        return self.max_episode_steps

    @property
    def max_episode_steps(self) -> int:
        loaded = self._load()
        return -(-loaded.episode_length // loaded.action_repeat)

    def reset(self, key: Key) -> tuple[PyTree, PyTree]:
        key_suite, key_drawn = jax.random.split(key)
        drawn = strong(self.physics.draw(key_drawn))
        start = self._made(drawn).reset(jax.random.key_data(key_suite))
        start = strong(start.replace(reward=jnp.zeros(()), done=jnp.zeros(())))
        return start.obs, Episode(_kept(start), jnp.zeros((), jnp.int32), drawn)

    def transition(self, key: Key, state: PyTree, action: Array) -> Step:
        env, repeat = self._made(state.drawn), self._load().action_repeat
        suite, reward = _acted(env, _whole(state.suite), action, repeat)
        steps = state.steps + 1
        truncated = steps >= self.max_episode_steps
        timestep = outcome(suite.obs, reward, suite.done > 0, truncated)
        return timestep, state._replace(suite=_kept(suite), steps=steps)

    def render(self, state: PyTree) -> np.ndarray:
        name = f"{type(self).__name__}.id: {self.id!r}"
        return scenes.draw(name, *self._posed(_whole(state.suite)))

    def _types(self) -> Mapping[str, Any]:
        """Returns the types of the suite's parameters, by name."""
        raise missing(self, "_types")

    def _load(self) -> Simulation:
        """Returns the simulation with its static parameters."""
        raise missing(self, "_load")

    def _made(self, drawn: Mapping[str, Array]) -> Any:
        """Returns the simulation with all numbers, those of an episode included."""
        raise missing(self, "_made")

    def _posed(self, suite: Any) -> tuple[Any, dict[str, Any]]:
        """Returns MuJoCo's model, and fields of its data for a state, by name."""
        raise missing(self, "_posed")


def changed(env: Any, **attributes: Any) -> Any:
    """Returns a copy of a simulation with other attributes."""
    other = copy.copy(env)
    vars(other).update(attributes)
    return other


def _acted(env: Any, start: Any, action: Array, repeat: int) -> tuple[Any, Array]:
    """Repeats an action up to an end; returns the state and the sum of rewards."""

    def step(state: Any, _: None) -> tuple[Any, Array]:
        after = strong(env.step(state, action))
        over = state.done > 0
        return tree.where(over, (state, 0.0 * state.reward), (after, after.reward))

    state, rewards = jax.lax.scan(step, start, length=repeat)
    return state, rewards.sum()


def _kept(state: PyTree) -> PyTree:
    """Returns a state as it is carried from step to step, without empty arrays."""
    return jax.tree.map(lambda x: x if x.size else Empty(x.shape, x.dtype), state)


def _whole(state: PyTree) -> PyTree:
    """Returns a state in the suite's form, with its empty arrays."""

    def array(x: Any) -> Array:
        return jnp.zeros(x.shape, x.dtype) if isinstance(x, Empty) else x

    return jax.tree.map(array, state, is_leaf=lambda x: isinstance(x, Empty))


def _idle(env: Bodies) -> tuple[str, ...]:
    """Returns the numbers that are set but that nothing depends on."""
    return _unread(jax.tree.structure(env)) if numbers(env) else ()


@functools.cache
def _unread(of: Any) -> tuple[str, ...]:
    """Returns the numbers that nothing depends on; traced once for all values."""
    return tuple(unread(of.unflatten([1.0] * of.num_leaves)))

"""The protocol of environments.

An environment is a component: its floats are numbers like any other, so a population
can be spread over them. All functions take one environment; callers `jax.vmap`.
"""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.typing import ArrayLike

from ppo_jax.arrays import tree
from ppo_jax.component import component
from ppo_jax.errors import Misfit, UserError, kind, missing
from ppo_jax.types import Array, Key, Metrics, PyTree

NEVER = 2**31 - 1
"""`min_steps_to_truncation` of an environment that never truncates."""


class Discrete(NamedTuple):
    """Actions 0 … n − 1, an int32 scalar."""

    n: int

    @property
    def nvec(self) -> tuple[int, ...]:
        """Number of choices, as in a `MultiDiscrete` with one action."""
        return (self.n,)


class MultiDiscrete(NamedTuple):
    """Several independent discrete actions, int32 `[len(nvec)]`."""

    nvec: tuple[int, ...]


class Box(NamedTuple):
    """Real actions between two bounds, float32 `[len(low)]`."""

    low: tuple[float, ...]
    high: tuple[float, ...]


ActionSpace = Discrete | MultiDiscrete | Box


class Timestep(NamedTuple):
    """Result of a step of an environment; `outcome` makes one with the right types."""

    obs: PyTree
    """The agent's next observation: after an end, the first of the next episode."""
    final_obs: PyTree
    """The observation after this step and before any reset; equal to `obs` within an
    episode."""
    reward: Array
    """The reward, a finite float32 scalar."""
    terminated: Array
    """Whether the episode ended by itself: its value afterwards is 0."""
    truncated: Array
    """Whether the episode was cut off: its value goes on in `final_obs`, unless it also
    terminated."""
    weight: Array | float = 1.0
    """Weight of this step in losses and statistics, finite and ≥ 0; 0 hides it."""
    cost: Array | float = 0.0
    """A cost to report, in units of its own; statistics skip one that is not finite."""
    group: Array | int = -1
    """The group that statistics count this step in; −1: a group per environment."""


Step = tuple[Timestep, PyTree]
"""Result of one step, and the state after it."""


def outcome(
    obs: PyTree,
    reward: ArrayLike,
    terminated: ArrayLike = False,
    truncated: ArrayLike = False,
    weight: ArrayLike = 1.0,
    cost: ArrayLike = 0.0,
    group: ArrayLike = -1,
) -> Timestep:
    """Makes the `Timestep` of a `transition`, every field a strong array of its type.

    `obs` is the observation that the step led to, and becomes `final_obs` too. All
    other arguments are scalars with the meaning of `Timestep`'s fields.

    Raises:
        Misfit: If `terminated` or `truncated` is a float.

    >>> step = outcome(jnp.zeros(2), reward=1, terminated=True)
    >>> step.reward.dtype.name, step.terminated.item(), step.truncated.item()
    ('float32', True, False)
    """
    obs = strong(obs)
    return Timestep(
        obs=obs,
        final_obs=obs,
        reward=jnp.asarray(reward, jnp.float32),
        terminated=_flag("terminated", terminated),
        truncated=_flag("truncated", truncated),
        weight=jnp.asarray(weight, jnp.float32),
        cost=jnp.asarray(cost, jnp.float32),
        group=jnp.asarray(group, jnp.int32),
    )


def _flag(name: str, given: ArrayLike) -> Array:
    """Returns a truth value; a float is none, as NaN would be true."""
    if jnp.issubdtype(jnp.result_type(given), jnp.floating):
        expected = "a truth value, such as x > 0"
        raise Misfit(f"outcome: {name}: expected {expected}, got {kind(given)}")
    return jnp.asarray(given, bool)


@component
class Env:
    """An environment: `reset`, `transition`, `action_space`; the rest follows.

    Types and shapes never change: `transition` returns observations and states like
    those of `reset`. `check` tests that, and more.

    >>> @component
    ... class Guess(Env):
    ...     prize: float = 1.0
    ...
    ...     @property
    ...     def action_space(self):
    ...         return Discrete(2)
    ...
    ...     def reset(self, key):
    ...         coin = jax.random.randint(key, (), 0, 2)
    ...         return jnp.zeros(1), coin
    ...
    ...     def transition(self, key, state, action):
    ...         reward = jnp.where(action == state, self.prize, 0.0)
    ...         return outcome(jnp.zeros(1), reward, terminated=True), state
    >>> jax.eval_shape(Guess().reset, jax.random.key(0))[0].shape
    (1,)
    """

    @property
    def action_space(self) -> ActionSpace:
        """The actions that steps take; like the next two, the same for all numbers."""
        raise missing(self, "action_space")

    @property
    def min_steps_to_truncation(self) -> int:
        """The fewest steps from a reset to a truncation; higher saves memory.

        It may be too low, never too high; `NEVER` if there is no truncation.
        """
        return 1

    @property
    def max_episode_steps(self) -> int | None:
        """The most steps that an episode can have; None: unknown."""
        return None

    @property
    def acts_late(self) -> bool:
        """Whether an action affects only later steps' rewards, apart from a fee."""
        return False

    @property
    def has_transition(self) -> bool:
        """Whether a step is a `transition`, then a `restart` at an end, and no more."""
        own = type(self).transition is not Env.transition
        return own and type(self).step is Env.step

    @property
    def simulated(self) -> bool:
        """Whether `simulators` on the host take its steps, instead of programs."""
        return False

    @property
    def outline(self) -> "Env":
        """An environment to trace programs with for their shapes; by default itself."""
        return self

    def simulators(
        self,
        members: Sequence[Any],
        each: int,
        processes: int,
        render_mode: str | None = None,
    ) -> Any:
        """Makes simulators of the members' environments, if it is `simulated`.

        With a `render_mode` of `rgb_array`, they can draw pictures.
        """
        raise missing(self, "simulators")

    def reset(self, key: Key) -> tuple[PyTree, PyTree]:
        """Starts an episode; returns its first observation and its state."""
        raise missing(self, "reset")

    def transition(self, key: Key, state: PyTree, action: Array) -> Step:
        """Takes a step without a reset; `obs` is its result, also after an end."""
        raise missing(self, "transition")

    def restart(self, key: Key, state: PyTree) -> tuple[PyTree, PyTree]:
        """Starts the episode after one that ended in `state`, as `reset` does."""
        return self.reset(key)

    def renew(self, key: Key, state: PyTree) -> PyTree:
        """Returns the state to go on with before every rollout, of the same types.

        The episode under way goes on; data that later episodes need may be drawn again.
        """
        return state

    def metrics(self, state: PyTree) -> Metrics:
        """Returns metrics of a rollout from the state after it.

        They are summed over all environments.
        """
        return {}

    def action_mask(self, state: PyTree) -> Array | None:
        """Returns the mask of the actions allowed in this state; None: all of them.

        Bool `[n]`, for `MultiDiscrete` `[sum(nvec)]`: one component after the other.
        """
        return None

    def render(self, state: PyTree) -> np.ndarray:
        """Draws a state, uint8 `[H, W, 3]`; called on the host, never traced.

        The state is that of one environment, its leaves are arrays of the host.

        Raises:
            UserError: If it cannot be drawn.
        """
        name = type(self).__name__
        raise UserError(
            f"{name}.render: missing; an environment is drawn by one of its own, which "
            "gives a picture of a state, uint8 [H, W, 3]"
        )

    def step(self, key: Key, state: PyTree, action: Array) -> Step:
        """Takes a step; when it ends an episode, the next episode starts at once.

        An override keeps three promises: `final_obs` is from before the reset, `obs`
        and the state from after it, and the new episode is drawn with `key`.
        """
        key_step, key_reset = jax.random.split(key)
        timestep, state = self.transition(key_step, state, action)
        done = timestep.terminated | timestep.truncated
        obs, state = tree.where(
            done, self.restart(key_reset, state), (timestep.obs, state)
        )
        return timestep._replace(obs=obs, final_obs=timestep.obs), state


def of_each(function: Callable[..., Any]) -> Callable[..., Any]:
    """Returns an `exact` function of one environment for many, with arrays `[B, ...]`.

    >>> turn = of_each(lambda angle, vector: angle @ vector)
    >>> turn(jnp.ones((3, 2, 2)), jnp.ones((3, 2))).shape
    (3, 2)
    """
    return exact(jax.vmap(function))


def exact(function: Callable[..., Any]) -> Callable[..., Any]:
    """Returns a function whose products have all digits of float32 on every platform.

    On GPUs and TPUs JAX multiplies with fewer by default, and errors of a simulation
    add up over its steps.
    """
    return jax.default_matmul_precision("highest")(function)


def strong(state: PyTree) -> PyTree:
    """Returns arrays without weak types, which would change the type of a loop's carry.

    >>> strong({"time": 0})["time"].weak_type
    False
    """

    def convert(x):
        x = jnp.asarray(x)
        if jnp.issubdtype(x.dtype, jax.dtypes.extended):  # Keys are never weak.
            return x
        return jax.lax.convert_element_type(x, x.dtype)

    return jax.tree.map(convert, state)

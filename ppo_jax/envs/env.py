"""One protocol for environments.

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
from ppo_jax.errors import UserError, missing
from ppo_jax.types import Array, Key, Metrics, PyTree

NEVER = 2**31 - 1
"""`min_steps_to_truncation` of an environment that never truncates."""


class Discrete(NamedTuple):
    """Actions 0 … n − 1, an int32 scalar."""

    n: int

    @property
    def nvec(self) -> tuple[int, ...]:
        """As a `MultiDiscrete` of one has it."""
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
    """What one step of an environment led to; `outcome` makes one with right types."""

    obs: PyTree
    """What the agent sees next: after the end of an episode, the next one's first."""
    final_obs: PyTree
    """What this step led to, before any reset; equal to `obs` within an episode."""
    reward: Array
    """Float32 scalar, finite."""
    terminated: Array
    """The episode ended by itself: nothing is worth anything afterwards."""
    truncated: Array
    """The episode was cut off: its value goes on in `final_obs`, if it did not end."""
    weight: Array | float = 1.0
    """Weight of this step in losses and statistics, finite and ≥ 0; 0 hides it."""
    cost: Array | float = 0.0
    """A cost to report, in units of its own; statistics skip one that is not finite."""
    group: Array | int = -1
    """The group that statistics count this step in; −1: a group per environment."""


Step = tuple[Timestep, PyTree]
"""What one step led to, and the state after it."""


def outcome(
    obs: PyTree,
    reward: ArrayLike,
    terminated: ArrayLike = False,
    truncated: ArrayLike = False,
    weight: ArrayLike = 1.0,
    cost: ArrayLike = 0.0,
    group: ArrayLike = -1,
) -> Timestep:
    """What a `transition` led to, every field a strong array of its type.

    `obs` is where the step led, and becomes `final_obs` too. All others are scalars and
    mean what they mean in `Timestep`.

    >>> step = outcome(jnp.zeros(2), reward=1, terminated=True)
    >>> step.reward.dtype.name, step.terminated.item(), step.truncated.item()
    ('float32', True, False)
    """
    obs = strong(obs)
    return Timestep(
        obs=obs,
        final_obs=obs,
        reward=jnp.asarray(reward, jnp.float32),
        terminated=jnp.asarray(terminated, bool),
        truncated=jnp.asarray(truncated, bool),
        weight=jnp.asarray(weight, jnp.float32),
        cost=jnp.asarray(cost, jnp.float32),
        group=jnp.asarray(group, jnp.int32),
    )


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
        """Whether an action meets no reward before that of the next step, but a fee."""
        return False

    @property
    def has_transition(self) -> bool:
        """Whether a step is a `transition`, then a `restart` at an end; no more."""
        own = type(self).transition is not Env.transition
        return own and type(self).step is Env.step

    @property
    def simulated(self) -> bool:
        """Whether its steps are taken on the host, by `simulators`, in no program."""
        return False

    @property
    def outline(self) -> "Env":
        """What programs are traced with to know their shapes: of most, itself."""
        return self

    def simulators(
        self,
        members: Sequence[Any],
        each: int,
        processes: int,
        render_mode: str | None = None,
    ) -> Any:
        """Simulators of the members' environments, if it is `simulated`.

        Made with a `render_mode` of `rgb_array`, they can draw what they show.
        """
        raise missing(self, "simulators")

    def reset(self, key: Key) -> tuple[PyTree, PyTree]:
        """Starts an episode; returns its first observation and its state."""
        raise missing(self, "reset")

    def transition(self, key: Key, state: PyTree, action: Array) -> Step:
        """One step without a reset; `obs` is what it led to, whatever happened."""
        raise missing(self, "transition")

    def restart(self, key: Key, state: PyTree) -> tuple[PyTree, PyTree]:
        """Starts the episode after one that left off in `state`; as `reset` does."""
        return self.reset(key)

    def renew(self, key: Key, state: PyTree) -> PyTree:
        """Called once before every rollout: the state to go on with, of the same types.

        The episode under way goes on; what other episodes need may be drawn anew.
        """
        return state

    def metrics(self, state: PyTree) -> Metrics:
        """What to log of a rollout, from the state after it; it is summed over all."""
        return {}

    def action_mask(self, state: PyTree) -> Array | None:
        """Which actions are allowed in this state; None: all of them.

        Bool `[n]`, for `MultiDiscrete` `[sum(nvec)]`: one component after the other.
        """
        return None

    def render(self, state: PyTree) -> np.ndarray:
        """A picture of a state, uint8 `[H, W, 3]`; asked on the host, never traced.

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
        """One step; when it ends an episode, the next episode starts at once.

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
    """Returns a function of one environment for many, whose arrays are `[B, ...]`.

    Its products have all digits of float32, also where JAX multiplies with fewer by
    default: on GPUs and TPUs. Errors of a simulation add up over its steps.

    >>> turn = of_each(lambda angle, vector: angle @ vector)
    >>> turn(jnp.ones((3, 2, 2)), jnp.ones((3, 2))).shape
    (3, 2)
    """
    return jax.default_matmul_precision("highest")(jax.vmap(function))


def strong(state: PyTree) -> PyTree:
    """Arrays without weak types, which would make a loop's carry change its type.

    >>> strong({"time": 0})["time"].weak_type
    False
    """

    def convert(x):
        x = jnp.asarray(x)
        if jnp.issubdtype(x.dtype, jax.dtypes.extended):  # Keys are never weak.
            return x
        return jax.lax.convert_element_type(x, x.dtype)

    return jax.tree.map(convert, state)

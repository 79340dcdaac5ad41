"""Probes whose episodes are one step long."""

from typing import Annotated, ClassVar

import jax
import jax.numpy as jnp

from ppo_jax.component import component
from ppo_jax.component.bounds import Bound, Several
from ppo_jax.envs.env import (
    NEVER,
    ActionSpace,
    Box,
    Discrete,
    Env,
    MultiDiscrete,
    Step,
    outcome,
    strong,
)
from ppo_jax.errors import missing
from ppo_jax.types import Array, Key, PyTree


@component
class OneStep(Env):
    """Episodes of one step, which always terminates them.

    A subclass defines the hidden state (`draw`), the observation (`observe`) and the
    reward (`pay`).
    """

    action_space: ClassVar[ActionSpace] = Discrete(2)
    min_steps_to_truncation: ClassVar[int] = NEVER
    max_episode_steps: ClassVar[int | None] = 1

    def draw(self, key: Key) -> PyTree:
        """Draws the state of a new episode."""
        return jnp.zeros((), jnp.int32)

    def observe(self, state: PyTree) -> PyTree:
        """Returns the observation of a state; by default the same for all states."""
        return jnp.ones(1)

    def pay(self, key: Key, state: PyTree, action: Array) -> Array:
        """Returns the reward."""
        raise missing(self, "pay")

    def reset(self, key: Key) -> tuple[PyTree, PyTree]:
        state = strong(self.draw(key))
        return strong(self.observe(state)), state

    def transition(self, key: Key, state: PyTree, action: Array) -> Step:
        reward = self.pay(key, state, action)
        return outcome(self.observe(state), reward, terminated=True), state


@component
class IdenticalRewards(OneStep):
    """Every action is worth the same in every state.

    Known answer: all advantages are exactly 0 once normalised; the policy never moves.

    >>> key, env = jax.random.key(0), IdenticalRewards(reward=3.0)
    >>> env.step(key, env.reset(key)[1], jnp.array(1))[0].reward.item()
    3.0
    """

    reward: float = 1.0

    def pay(self, key: Key, state: PyTree, action: Array) -> Array:
        return jnp.asarray(self.reward)


@component
class RiskyBandit(OneStep):
    """Two arms: 0 is safe, 1 is better on average and sometimes terrible.

    Known answer: arm 1 has mean `risky`, and CVaR at `chance` of `loss`. A policy
    without a constraint prefers it; one with CVaR₀.₀₅ ≥ 0 prefers arm 0, worth `safe`.

    >>> f"{RiskyBandit().gain:.4f}"
    '1.5789'
    """

    safe: float = 0.9
    risky: float = 1.0
    loss: float = -10.0
    chance: Annotated[float, Bound("a chance in [0, 1)", lambda x: 0 <= x < 1)] = 0.05

    @property
    def gain(self) -> float | Array:
        """Reward of arm 1 when it does not lose, so that its mean is `risky`."""
        return (self.risky - self.chance * self.loss) / (1 - self.chance)

    def pay(self, key: Key, state: PyTree, action: Array) -> Array:
        lost = jax.random.uniform(key) < self.chance
        return jnp.where(action == 0, self.safe, jnp.where(lost, self.loss, self.gain))


@component
class NoisyReturns(OneStep):
    """Normal returns that do not depend on the action, with their spread in view.

    Known answer: the observation is s, either `low` or `high`, the return N(0, s²), so
    its τ-quantile is s · Φ⁻¹(τ).
    """

    low: float = 0.5
    high: float = 2.0

    def draw(self, key: Key) -> PyTree:
        return jnp.where(jax.random.bernoulli(key), self.low, self.high).reshape(1)

    def observe(self, state: PyTree) -> PyTree:
        return state

    def pay(self, key: Key, state: PyTree, action: Array) -> Array:
        return state[0] * jax.random.normal(key)


@component
class MaskedBandit(OneStep):
    """A bandit whose best arms are forbidden, and pay 10 if taken all the same.

    Arm i pays i / (n − 1). Arms up to one drawn at random are allowed; the observation
    does not tell which.

    Known answer: the mean reward is 1/2 for the best policy that keeps to the mask and
    1/4 for a uniform one; any reward above 1 proves that a mask was ignored.
    """

    num_actions: Several = 5

    @property
    def action_space(self) -> ActionSpace:
        return Discrete(self.num_actions)

    def draw(self, key: Key) -> PyTree:
        return jax.random.randint(key, (), 0, self.num_actions)

    def action_mask(self, state: PyTree) -> Array | None:
        return jnp.arange(self.num_actions) <= state

    def pay(self, key: Key, state: PyTree, action: Array) -> Array:
        return jnp.where(action <= state, action / (self.num_actions - 1), 10.0)


@component
class HiddenSteps(OneStep):
    """A bandit in which a share of steps has weight 0, and the opposite rewards.

    Arm 1 pays 1 and arm 0 pays 0. On a hidden step arm 1 pays −`garbage` and arm 0
    pays `garbage`. The observation does not tell which steps are hidden.

    Known answer: an agent that honours weights takes arm 1, one that does not arm 0;
    the weighted mean reward is the probability of arm 1.
    """

    share: float = 0.5
    garbage: float = 100.0

    def draw(self, key: Key) -> PyTree:
        return jax.random.uniform(key) < self.share

    def pay(self, key: Key, state: PyTree, action: Array) -> Array:
        sign = jnp.where(action == 1, -1.0, 1.0)
        return jnp.where(state, sign * self.garbage, jnp.where(action == 1, 1.0, 0.0))

    def transition(self, key: Key, state: PyTree, action: Array) -> Step:
        timestep, after = super().transition(key, state, action)
        return timestep._replace(weight=jnp.where(state, 0.0, 1.0)), after


@component
class TwoDigits(OneStep):
    """Two digits are shown, which a `MultiDiscrete` action is to name.

    Known answer: the reward is the share of digits that are right; 1 for the best
    policy, 1 / `base` for a random one, half way between if one component is lost.
    """

    base: int = 3

    @property
    def action_space(self) -> ActionSpace:
        return MultiDiscrete((self.base, self.base))

    def draw(self, key: Key) -> PyTree:
        return jax.random.randint(key, (2,), 0, self.base)

    def observe(self, state: PyTree) -> PyTree:
        return jax.nn.one_hot(state, self.base).ravel()

    def pay(self, key: Key, state: PyTree, action: Array) -> Array:
        return jnp.mean(jnp.where(action == state, 1.0, 0.0))


@component
class NestedObservation(OneStep):
    """The observation is a nested dictionary, and every leaf of it matters.

    Known answer: the reward is 1 for the bit in `bits` that `which` points at,
    otherwise 0; 1 for the best policy, 1/2 for a random one, 3/4 without `which` or one
    of the bits.
    """

    def draw(self, key: Key) -> PyTree:
        return jax.random.bernoulli(key, 0.5, (3,)).astype(jnp.int32)

    def observe(self, state: PyTree) -> PyTree:
        which, left, right = jnp.split(state.astype(jnp.float32), 3)
        return {"bits": {"left": left, "right": right}, "which": which}

    def pay(self, key: Key, state: PyTree, action: Array) -> Array:
        return jnp.where(action == state[1 + state[0]], 1.0, 0.0)


@component
class Target(OneStep):
    """A point is shown; the action, between −2 and 2, is to hit it.

    Known answer: the reward is minus the squared distance; 0 for the action that
    repeats the observation, −`size` / 3 for the constant action 0.
    """

    size: int = 1

    @property
    def action_space(self) -> ActionSpace:
        return Box((-2.0,) * self.size, (2.0,) * self.size)

    def draw(self, key: Key) -> PyTree:
        return jax.random.uniform(key, (self.size,), minval=-1.0)

    def observe(self, state: PyTree) -> PyTree:
        return state

    def pay(self, key: Key, state: PyTree, action: Array) -> Array:
        return -jnp.sum((action - state) ** 2)


@component
class GridCue(OneStep):
    """An image `[size, size, 1]` has one lit pixel; the action names its quadrant.

    Known answer: the reward is 1 for the right quadrant, otherwise 0; 1 for the best
    policy, 1/4 for a random one.
    """

    size: int = 6

    action_space: ClassVar[ActionSpace] = Discrete(4)

    def draw(self, key: Key) -> PyTree:
        return jax.random.randint(key, (2,), 0, self.size)

    def observe(self, state: PyTree) -> PyTree:
        return jnp.zeros((self.size, self.size, 1)).at[state[0], state[1], 0].set(1.0)

    def pay(self, key: Key, state: PyTree, action: Array) -> Array:
        low, right = jnp.where(state >= self.size // 2, 1, 0)
        return jnp.where(action == 2 * low + right, 1.0, 0.0)

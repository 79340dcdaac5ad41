"""Probes whose episodes take several steps."""

from typing import Annotated, ClassVar, NamedTuple

import jax
import jax.numpy as jnp

from ppo_jax.component import component
from ppo_jax.component.bounds import Bound, Count, Natural, Several
from ppo_jax.envs.env import NEVER, ActionSpace, Discrete, Env, Step, outcome, strong
from ppo_jax.errors import missing
from ppo_jax.types import Array, Key, PyTree


@component
class TimeLimited(Env):
    """Episodes of `limit` steps, which are always truncated, whatever the action.

    A subclass defines the episode's constant (`draw`), the observation (`observe`) and
    the reward (`pay`); `time` is the number of steps taken so far.
    """

    limit: Count = 8

    action_space: ClassVar[ActionSpace] = Discrete(2)

    @property
    def min_steps_to_truncation(self) -> int:
        return self.limit

    @property
    def max_episode_steps(self) -> int | None:
        return self.limit

    def draw(self, key: Key) -> Array:
        """Draws the episode's constant, a scalar."""
        return jnp.ones((), jnp.float32)

    def observe(self, drawn: Array, time: Array) -> Array:
        """Returns the observation; by default the scalar that was drawn."""
        return drawn.reshape(1)

    def pay(self, drawn: Array, time: Array) -> dict[str, Array]:
        """Returns the reward of the step after `time` steps, and more for `outcome`."""
        raise missing(self, "pay")

    def reset(self, key: Key) -> tuple[PyTree, PyTree]:
        drawn, time = strong((self.draw(key), 0))
        return strong(self.observe(drawn, time)), (drawn, time)

    def transition(self, key: Key, state: PyTree, action: Array) -> Step:
        drawn, time = state
        obs = self.observe(drawn, time + 1)
        over = time + 1 >= self.limit
        timestep = outcome(obs, truncated=over, **self.pay(drawn, time))
        return timestep, (drawn, time + 1)


@component
class Accumulator(TimeLimited):
    """Observations 1, 2, 3, …, each also the reward of the step that follows it.

    Known answer (limit 3): a memory h ← h + x with value h predicts 1, 3, 6, and
    10 at the truncation, where `final_obs` is 4. One that sees observations twice
    predicts 1, 5, 9 and 8. Returns are `limit` · (`limit` + 1) / 2.

    >>> env, key = Accumulator(limit=3), jax.random.key(0)
    >>> obs, state = env.reset(key)
    >>> for _ in range(3):
    ...     step, state = env.step(key, state, jnp.array(0))
    >>> obs.tolist(), step.final_obs.tolist(), step.obs.tolist()
    ([1.0], [4.0], [1.0])
    """

    limit: Count = 3

    def observe(self, drawn: Array, time: Array) -> Array:
        return (time + 1).astype(jnp.float32).reshape(1)

    def pay(self, drawn: Array, time: Array) -> dict[str, Array]:
        return {"reward": time + 1}


@component
class TimeLimitChain(TimeLimited):
    """A chain with a constant reward at every step, and no end but the time limit.

    The observation is the sign of this episode's rewards: −1 for a share `negative` of
    episodes, which shows values that leak from the next episode into the one before.

    Known answer: V = ± `reward` / (1 − γ), 10 for γ = 0.9, whatever the limit. Taking
    truncation for an end gives at most (1 − γˡⁱᵐⁱᵗ) of V, and a leak from the next
    episode shrinks V when half of the episodes are negative. The reward is a number:
    raise it during a run to see a return scale drift.
    """

    reward: float = 1.0
    negative: Annotated[float, Bound("a share in [0, 1]", lambda x: 0 <= x <= 1)] = 0.0

    def draw(self, key: Key) -> Array:
        return jnp.where(jax.random.uniform(key) < self.negative, -1.0, 1.0)

    def pay(self, drawn: Array, time: Array) -> dict[str, Array]:
        return {"reward": drawn * self.reward}


@component
class Costs(TimeLimited):
    """Reports the costs of a table, one after the other; some are not finite.

    Known answer: over whole episodes finite costs have median 2 and mean 2, and half of
    all costs are counted as invalid. Rewards are 1 and untouched by costs.
    """

    limit: Count = 4
    table: tuple[float, ...] = (float("inf"), 1.0, float("nan"), 3.0)

    def pay(self, drawn: Array, time: Array) -> dict[str, Array]:
        cost = jnp.stack([jnp.asarray(x, jnp.float32) for x in self.table])
        return {"reward": drawn, "cost": cost[time % len(self.table)]}


class RecallState(NamedTuple):
    """State of `RecallCue`; int32 scalars."""

    cue: Array
    blanks: Array
    """Blank observations between cue and query in this episode."""
    time: Array


@component
class RecallCue(Env):
    """A cue, up to `delay` blanks, then a query for the cue.

    The number of blanks is drawn for every episode. Observations `[num_cues + 1]` are
    one-hot for the cue, zeros for a blank, and the last component alone for the query.
    Only the action at the query is paid, with 1 if it names the cue, and ends the
    episode.

    Known answer: the return is 1 with a memory, 1 / `num_cues` without one, or with one
    that is cleared, lost or replayed at the wrong time.
    """

    delay: Natural = 3
    num_cues: Several = 2

    min_steps_to_truncation: ClassVar[int] = NEVER

    @property
    def action_space(self) -> ActionSpace:
        return Discrete(self.num_cues)

    @property
    def max_episode_steps(self) -> int | None:
        return self.delay + 2

    def reset(self, key: Key) -> tuple[PyTree, PyTree]:
        key_cue, key_blanks = jax.random.split(key)
        cue = jax.random.randint(key_cue, (), 0, self.num_cues)
        blanks = jax.random.randint(key_blanks, (), 0, self.delay + 1)
        state = RecallState(cue, blanks, jnp.zeros((), jnp.int32))
        return self._observe(state), state

    def transition(self, key: Key, state: PyTree, action: Array) -> Step:
        asked = state.time == state.blanks + 1
        reward = jnp.where(asked & (action == state.cue), 1.0, 0.0)
        state = state._replace(time=state.time + 1)
        return outcome(self._observe(state), reward, terminated=asked), state

    def _observe(self, state: RecallState) -> Array:
        asked = state.time == state.blanks + 1
        shown = jnp.where(asked, self.num_cues, -1)  # −1: none.
        shown = jnp.where(state.time == 0, state.cue, shown)
        return jax.nn.one_hot(shown, self.num_cues + 1)

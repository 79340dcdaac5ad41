"""The state of training: pytrees of nothing but arrays.

The state that is copied is apart from the state that stays: a `Learner` can be given to
another member of a population, an `Actor` is a member's own memory and environments.
"""

from typing import Any, NamedTuple

from flax import struct

from ppo_jax.normalization.return_scale import ReturnScale
from ppo_jax.types import Array, Carry, Key, Params, PyTree


class Trajectory(NamedTuple):
    """A rollout; every leaf `[T, B, ...]`."""

    obs: PyTree
    """Observations as the network saw them: normalised, zeros in quarantined rows."""
    raw_obs: PyTree
    """Observations as the environment gave them; `()` if they are not normalised."""
    reset: Array
    """Whether the carry was cleared before the step."""
    action: Array
    """Sampled actions, before they were fitted to the bounds of the environment."""
    log_prob: Array
    action_mask: Array | tuple[()]
    value: Array
    """Value of `obs`: the least of the critics' means."""
    old_value: PyTree
    """Outputs of all critics for `obs`; `()` if nothing clips against them."""
    old_policy: PyTree
    """The policy that the action was sampled from; `()` if nothing reads it."""
    next_value: Array
    """The value of the next step, or of the final observation where truncated."""
    reward: Array
    terminated: Array
    last: Array
    """Whether the step is the last of an episode, however it ended."""
    valid: Array
    """False where something was not finite: the step is quarantined."""
    weight: Array
    """Weight in losses and statistics; 0 for masked and for quarantined steps."""
    group: Array
    cost: Array
    episode_return: Array
    """Return of the episode so far, this step included; NaN after a reward that was not
    finite."""
    episode_length: Array


class Batch(NamedTuple):
    """Data that loss terms learn from: chunks of a rollout, leaves `[L, b, ...]`."""

    obs: PyTree
    reset: Array
    action: Array
    log_prob: Array
    action_mask: Array | tuple[()]
    advantage: Array
    target: Array
    """λ-returns in units of the return scale, as the critics see them."""
    weight: Array
    old_value: PyTree
    """Outputs of the critics when acting; `()` if nothing clips against them."""
    old_policy: PyTree
    """The policies that actions were sampled from; `()` if nothing reads them."""
    prepared: tuple[PyTree, ...]
    """Data that each term of the objective prepared."""
    carry: Carry
    """Carry before the first step of each chunk, `[b, ...]`."""


@struct.dataclass
class Learner:
    """The part of a run that a population copies, and all that evaluation needs."""

    params: Params
    opt_state: PyTree
    config: Any
    """The experiment's `Config`; its leaves are this member's numbers."""
    obs_moments: PyTree
    """`Moments`, or `()` if observations are not normalised."""
    return_scale: ReturnScale
    """Scale that targets are divided by; the identity if returns are not normalised."""
    memories: tuple[PyTree, ...]
    """Memory of each term of the objective."""
    stop_memory: PyTree
    """Memory of the early stop."""


@struct.dataclass
class Actor:
    """The part of a run that stays with its member: environments `[B]` and memory."""

    env_state: PyTree
    obs: PyTree
    reset: Array
    carry: Carry
    episode_return: Array
    """Return of the episode under way; NaN after a reward that was not finite."""
    episode_length: Array


@struct.dataclass
class Counters:
    """Whole numbers, int32 `[]`; all but the last two only grow."""

    updates: Array
    skipped_steps: Array
    """Optimiser steps that were no-ops because something was not finite."""
    quarantined: Array
    """Environment steps that were not finite."""
    failure_streak: Array
    """Updates in a row of which every optimiser step was skipped."""
    episodes: Array
    """Episodes that ended since the member last copied another one."""


@struct.dataclass
class Run:
    """The whole state of one member, from which it can be resumed."""

    learner: Learner
    actor: Actor
    key: Key
    """The only key; it never leaves the member."""
    counters: Counters


@struct.dataclass
class Population:
    """Members trained in one program; a single run is P = 1."""

    runs: Run
    """Every leaf `[P, ...]`."""
    fitness: Array
    """Fitness of every member at the last evaluation, greater is better, `[P]`; NaN
    before the first, and of a member that was healed since."""
    waited: Array
    """Rounds in a row in which too few members were ready to evolve, int32 `[]`."""

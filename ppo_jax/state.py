"""What training carries: pytrees, and nothing in them but arrays.

What copies is apart from what stays: a `Learner` can be given to another member of a
population, an `Actor` is a member's own memory and environments.
"""

from typing import Any, NamedTuple

from flax import struct

from ppo_jax.normalization.return_scale import ReturnScale
from ppo_jax.types import Array, Carry, Key, Params, PyTree


class Trajectory(NamedTuple):
    """A rollout; every leaf `[T, B, ...]`."""

    obs: PyTree
    """As the network saw it: normalised, zeros in quarantined rows."""
    raw_obs: PyTree
    """As the environment gave it; `()` if observations are not normalised."""
    reset: Array
    """Where the carry was cleared before the step."""
    action: Array
    """What was sampled, before it was fitted to the bounds of the environment."""
    log_prob: Array
    action_mask: Array | tuple[()]
    value: Array
    """What the critics said of `obs`, the least of their means."""
    old_value: PyTree
    """All that they said of it; `()` if nothing clips against it."""
    old_policy: PyTree
    """What the action was sampled from; `()` if nothing reads it."""
    next_value: Array
    """The value of the next step, or of the final observation where truncated."""
    reward: Array
    terminated: Array
    last: Array
    """The last step of an episode, however it ended."""
    valid: Array
    """False where something was not finite: the step is quarantined."""
    weight: Array
    """Weight in losses and statistics; 0 for masked and for quarantined steps."""
    group: Array
    cost: Array
    episode_return: Array
    """Of the episode so far, this step included; NaN after a reward that was not."""
    episode_length: Array


class Batch(NamedTuple):
    """What loss terms learn from: chunks of a rollout, leaves `[L, b, ...]`."""

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
    """What the critics said when acting; `()` if nothing clips against it."""
    old_policy: PyTree
    """What actions were sampled from; `()` if nothing reads it."""
    prepared: tuple[PyTree, ...]
    """What each term of the objective prepared."""
    carry: Carry
    """Before the first step of each chunk, `[b, ...]`."""


@struct.dataclass
class Learner:
    """What a population copies, and all that evaluation needs."""

    params: Params
    opt_state: PyTree
    config: Any
    """The experiment's `Config`; its leaves are this member's numbers."""
    obs_moments: PyTree
    """`Moments`, or `()` if observations are not normalised."""
    return_scale: ReturnScale
    """What targets are divided by; the identity if returns are not normalised."""
    memories: tuple[PyTree, ...]
    """What each term of the objective remembers."""
    stop_memory: PyTree
    """What the early stop remembers."""


@struct.dataclass
class Actor:
    """What stays with its member: environments `[B]` and memory."""

    env_state: PyTree
    obs: PyTree
    reset: Array
    carry: Carry
    episode_return: Array
    """Of the episode under way; NaN from a reward that was not finite."""
    episode_length: Array


@struct.dataclass
class Counters:
    """Whole numbers, int32 `[]`; but for the last two they only grow."""

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
    """One member, whole and resumable."""

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
    """Of every member at the last evaluation, greater is better, `[P]`; NaN before."""
    waited: Array
    """Rounds in a row in which too few members were ready to evolve, int32 `[]`."""

"""What a term of the objective is, what it sees, and what it may remember."""

from collections.abc import Callable
from typing import Any, ClassVar, NamedTuple

import jax.numpy as jnp

from ppo_jax.component import component
from ppo_jax.critics import ValueDist
from ppo_jax.distributions import Distribution
from ppo_jax.moments import TINY
from ppo_jax.return_scale import ReturnScale
from ppo_jax.state import Batch
from ppo_jax.types import Array, Metrics, PyTree


class Attacked(NamedTuple):
    """What an adversary did to the policy at the rows of a minibatch, `[L, b]`."""

    clean: Distribution
    """At the true observations."""
    perturbed: Distribution
    """At those that the adversary shows."""
    mask: Array
    """Which rows were attacked, bool; elsewhere both are the same."""
    metrics: Metrics
    """Of the attack, per example."""

    def alone(self, x: Array, weight: Array) -> Array:
        """Examples `[L, b]` whose mean over all rows is that of x over attacked ones.

        Args:
            x: Examples `[L, b]`; anything where there was no attack.
            weight: Weights ≥ 0 of the rows, `[L, b]`.
        """
        own = jnp.sum(jnp.where(self.mask, weight, 0.0))
        share = own / jnp.maximum(weight.sum(), TINY)
        return jnp.where(self.mask, x, 0.0) / jnp.maximum(share, TINY)


class Forward(NamedTuple):
    """What one pass over a minibatch produced."""

    policy: Distribution
    value: ValueDist
    """In units of the return scale, as are the targets."""
    log_ratio: Array
    """ln π(a) − ln π_old(a), `[L, b]`."""
    attacked: Attacked | None = None
    """What an adversary did; None without one."""


class Rollout(NamedTuple):
    """What a term may prepare examples from, `[T, B]`, in units of rewards."""

    reward: Array
    target: Array
    """λ-returns."""
    weight: Array
    unit: Array
    """The deviation of the advantages, `[]`: 1 if they were not divided by one,
    infinite if they do not vary."""


class Context(NamedTuple):
    """What a term knows beside the minibatch."""

    memory: PyTree
    """What it remembers from earlier updates."""
    prepared: PyTree
    """What it prepared for these examples, leaves `[L, b]`."""
    progress: Array
    """From 0 in the first update to 1 in the last, `[]`."""
    scale: ReturnScale
    observe: Callable[[PyTree], PyTree] = lambda obs: obs
    """What the network sees of what an environment gives."""
    policy: Callable[[PyTree], Distribution] | None = None
    """What the policy that learns would do, given observations `[L, n, ...]` as the
    environment gives them, of episodes that begin with the first."""


@component
class Term:
    """A summand of the objective.

    It returns a loss per example and does not weight, mask or average: `objective`
    alone does. One that needs the whole rollout prepares it once per update; one that
    adapts remembers arrays from update to update, which are checkpointed and copied
    with the learner.
    """

    guides: ClassVar[bool] = True
    """Whether it says what the policy should do, not only how, or what it is worth."""

    def check(self, config: Any) -> None:
        """Checks that it fits an experiment; called when one is constructed.

        Raises:
            ValueError: If it does not; the message names a field of the experiment.
        """
        del config

    @property
    def reads_old_policy(self) -> bool:
        """Whether it reads `Batch.old_policy`, which is not stored otherwise."""
        return False

    def init(self) -> PyTree:
        """What it remembers before the first update."""
        return ()

    def prepare(self, memory: PyTree, rollout: Rollout) -> tuple[PyTree, Metrics]:
        """What examples need of the whole rollout, leaves `[T, B]`; metrics `[]`."""
        del memory, rollout
        return (), {}

    def __call__(
        self, out: Forward, batch: Batch, context: Context
    ) -> tuple[Array, Metrics]:
        """Loss and metrics per example, `[L, b]`."""
        raise NotImplementedError

    def update(self, memory: PyTree, metrics: Metrics) -> PyTree:
        """What it remembers after an update with these metrics, means `[]`.

        It is not called for an update without any finite step.
        """
        del metrics
        return memory

"""What a term of the objective is, what it sees, and what it may remember."""

from collections.abc import Callable, Iterable
from typing import Any, ClassVar, NamedTuple

import jax
import jax.numpy as jnp

from ppo_jax.component import component
from ppo_jax.critics import ValueDist
from ppo_jax.errors import Misfit, kind, missing, require_shape
from ppo_jax.metrics.reductions import Metric
from ppo_jax.networks.distributions import Distribution
from ppo_jax.normalization.observations import TINY
from ppo_jax.normalization.return_scale import ReturnScale
from ppo_jax.state import Batch
from ppo_jax.types import Array, Metrics, PyTree

Loss = tuple[Array, Metrics]
"""What a term says of a minibatch."""
Prepared = tuple[PyTree, Metrics]
"""What a term makes of a rollout."""


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


class RolloutTargets(NamedTuple):
    """What a term may prepare examples from, `[T, B]`, in units of rewards."""

    reward: Array
    target: Array
    """λ-returns."""
    weight: Array
    unit: Array
    """The deviation that advantages were divided by: 1 if they were not divided by
    one, infinite if they do not vary."""
    cost: Array
    """What environments report, in units of its own; it may not be finite."""
    discount: Array
    """γ; 0 at the last step of an episode, and at one that is quarantined."""


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
    says: ClassVar[tuple[Metric, ...]] = ()
    """Rows of its own metrics: one of `LARGEST` is that of examples and steps too; of
    all others an update says the mean, and a row what becomes of it over a phase."""

    compares: ClassVar[bool] = False
    """Whether it compares what is attacked with what is not."""

    @property
    def clips(self) -> bool:
        """Whether it needs predictions that are clipped."""
        return False

    def check(self, config: Any) -> None:
        """Checks that it fits an experiment; called when one is constructed.

        Raises:
            ValueError: If it does not; the message names a field of the experiment.
        """

    def doubts(self, config: Any) -> Iterable[str]:
        """What is possible but odd about it in an experiment, line by line."""
        return ()

    @property
    def reads_old_policy(self) -> bool:
        """Whether it reads `Batch.old_policy`, which is not stored otherwise."""
        return False

    def init(self) -> PyTree:
        """What it remembers before the first update."""
        return ()

    def prepare(self, memory: PyTree, rollout: RolloutTargets) -> Prepared:
        """What examples need of the whole rollout, leaves `[T, B]`; metrics `[]`."""
        return (), {}

    def __call__(self, out: Forward, batch: Batch, context: Context) -> Loss:
        """Loss and metrics per example, `[L, b]`."""
        raise missing(self, "__call__")

    def update(self, memory: PyTree, metrics: Metrics) -> PyTree:
        """What it remembers after an update with these metrics, means `[]`.

        It is not called for an update without any finite step.
        """
        return memory


def evaluated(term: Term, out: Forward, batch: Batch, context: Context) -> Loss:
    """What a term says of a minibatch.

    Raises:
        Misfit: If it is not a loss and metrics, a number per example each.
    """
    name = type(term).__name__
    loss, metrics = _pair(name, term(out, batch, context), "(loss, dict of metrics)")
    for what, value in {"loss": loss, **metrics}.items():
        shape = batch.weight.shape
        require_shape(f"{name}: {what}", value, shape, "a number per example")
    return loss, metrics


def prepared_by(term: Term, memory: PyTree, rollout: RolloutTargets) -> Prepared:
    """What a term prepares of a rollout.

    Raises:
        Misfit: If it is not a row per step, and metrics that are one number each.
    """
    name, steps = f"{type(term).__name__}.prepare", rollout.weight.shape
    said = term.prepare(memory, rollout)
    rows, metrics = _pair(name, said, "(examples, dict of metrics)")
    for leaf in jax.tree.leaves(rows):
        if jnp.shape(leaf)[:2] != steps:
            expected = f"arrays whose shape begins with {steps}, a row per step"
            raise Misfit(f"{name}: expected {expected}, got {kind(leaf)}")
    for what, value in metrics.items():
        require_shape(f"{name}: {what}", value, (), "a number")
    return rows, metrics


def remembered_by(term: Term, memory: PyTree, metrics: Metrics) -> PyTree:
    """What a term remembers after an update.

    Raises:
        Misfit: If it has another structure or other shapes than before.
    """
    after = term.update(memory, metrics)
    if _form(after) != _form(memory):
        old, new = (jax.tree.map(kind, tree) for tree in (memory, after))
        name = type(term).__name__
        raise Misfit(f"{name}.update: expected {old} as before, got {new}")
    return after


def _form(tree: PyTree) -> tuple[Any, list[tuple[int, ...]]]:
    """The structure of a tree and the shapes in it."""
    return jax.tree.structure(tree), [jnp.shape(leaf) for leaf in jax.tree.leaves(tree)]


def _pair(name: str, said: Any, expected: str) -> tuple[Any, Metrics]:
    if isinstance(said, tuple) and len(said) == 2 and isinstance(said[1], dict):
        return said
    raise Misfit(f"{name}: expected {expected}, got {kind(said)}")

"""The interface of a term: a loss per example, with what it sees and remembers."""

from collections.abc import Callable, Iterable
from typing import Any, ClassVar, NamedTuple

import jax
import jax.numpy as jnp

from ppo_jax.arrays import tree
from ppo_jax.component import component
from ppo_jax.critics import ValueDist
from ppo_jax.errors import Misfit, kind, missing, pair, require_shape
from ppo_jax.metrics.own import named
from ppo_jax.metrics.reductions import Metric
from ppo_jax.networks.distributions import Distribution
from ppo_jax.normalization.observations import TINY
from ppo_jax.normalization.return_scale import ReturnScale
from ppo_jax.state import Batch
from ppo_jax.types import Array, Key, Metrics, PyTree

Loss = tuple[Array, Metrics]
"""A loss per example `[L, b]`, and metrics per example by name."""
Prepared = tuple[PyTree, Metrics]
"""Rows `[T, B, ...]` for the minibatches, and metrics `[]` by name."""


class Attacked(NamedTuple):
    """The policy at the rows of a minibatch `[L, b]`, with and without an attack."""

    clean: Distribution
    """The policy at the true observations."""
    perturbed: Distribution
    """The policy at the observations that the adversary shows."""
    mask: Array
    """True at attacked rows; elsewhere both policies are the same."""
    share: Array
    """Share of attacked rows in the weight of a minibatch, all its parts together."""
    metrics: Metrics
    """Metrics of the attack, per example."""

    def alone(self, x: Array) -> Array:
        """Returns examples with the mean that `x` has over attacked rows, `[L, b]`.

        It is the mean over all parts of a minibatch, whatever their shares.
        """
        return jnp.where(self.mask, x, 0.0) / jnp.maximum(self.share, TINY)


class Forward(NamedTuple):
    """Outputs of the networks for a minibatch."""

    policy: Distribution
    value: ValueDist
    """Predictions, in units of the return scale like `Batch.target`."""
    log_ratio: Array
    """ln π(a) − ln π_old(a), `[L, b]`."""
    attacked: Attacked | None = None
    """The attacked rows; None without an adversary."""


class RolloutTargets(NamedTuple):
    """A whole rollout `[T, B]`, in units of rewards, for `Term.prepare`."""

    reward: Array
    target: Array
    """λ-returns."""
    weight: Array
    unit: Array
    """Deviation of all advantages `[]`: 1 without a standardisation, infinite for
    advantages that do not vary."""
    cost: Array
    """Costs that environments report, in units of their own; not always finite."""
    discount: Array
    """γ; 0 at the last step of an episode and at quarantined steps."""
    key: Key
    """Key for random draws; each update, member and term has its own."""


class Context(NamedTuple):
    """Everything that a term knows beside the minibatch."""

    memory: PyTree
    """The term's memory of earlier updates."""
    prepared: PyTree
    """The prepared rows of these examples, leaves `[L, b, ...]`."""
    progress: Array
    """Progress of training: 0 in the first update, 1 in the last, `[]`."""
    scale: ReturnScale
    observe: Callable[[PyTree], PyTree] = lambda obs: obs
    """Maps an observation of the environment to what the network is given."""
    policy: Callable[[PyTree], Distribution] | None = None
    """Maps observations of the environment `[L, n, ...]`, n episodes from their
    beginnings, to the policy that learns."""


@component
class Term:
    """A summand of the objective.

    It returns a loss per example and does not weight, mask or average: `objective`
    alone does. One that needs the whole rollout prepares it once per update; one that
    adapts remembers arrays from update to update, which are checkpointed and copied
    with the learner.
    """

    guides: ClassVar[bool] = True
    """Whether it tells the policy what to do by itself; constraints, entropy and value
    losses do not."""
    says: ClassVar[tuple[Metric, ...]] = ()
    """Its own metrics. One that reduces by `LARGEST` is the largest over examples and
    steps as well. Others are means over an update, and reduced over a phase."""

    compares: ClassVar[bool] = False
    """Whether it compares attacked rows with clean ones."""

    @property
    def clips(self) -> bool:
        """Whether it needs a critic whose predictions can be clipped."""
        return False

    def check(self, config: Any) -> None:
        """Checks that the term fits an experiment, as the experiment is constructed.

        Raises:
            ValueError: If it does not; the message names a field of the experiment.
        """

    def doubts(self, config: Any) -> Iterable[str]:
        """Returns warnings about an experiment that is possible but odd."""
        return ()

    @property
    def reads_old_policy(self) -> bool:
        """Whether it reads `Batch.old_policy`, which is not stored otherwise."""
        return False

    def init(self) -> PyTree:
        """Returns the memory before the first update."""
        return ()

    def prepare(self, memory: PyTree, rollout: RolloutTargets) -> Prepared:
        """Returns rows `[T, B, ...]` made from the whole rollout, and metrics `[]`."""
        return (), {}

    def __call__(self, out: Forward, batch: Batch, context: Context) -> Loss:
        """Returns the loss and metrics per example, `[L, b]`."""
        raise missing(self, "__call__")

    def update(self, memory: PyTree, metrics: Metrics) -> PyTree:
        """Returns the memory after an update with these metrics, means `[]`.

        It is not called for an update without any finite step.
        """
        return memory


def evaluated(term: Term, out: Forward, batch: Batch, context: Context) -> Loss:
    """Returns the loss and metrics of a term for a minibatch.

    Raises:
        Misfit: If it returns anything but a loss and metrics, all per example, or
            names a metric as one that is measured anyway.
    """
    name = type(term).__name__
    said = term(out, batch, context)
    loss, metrics = pair(name, said, "(loss, dict of metrics)", dict)
    for what, value in {"loss": loss, **named(name, metrics)}.items():
        shape = batch.weight.shape
        require_shape(f"{name}: {what}", value, shape, "a number per example")
    return loss, metrics


def prepared_by(term: Term, memory: PyTree, rollout: RolloutTargets) -> Prepared:
    """Returns the rows and metrics that a term prepares from a rollout.

    Raises:
        Misfit: If it returns anything but a row per step, and metrics of one number,
            or names a metric as one that is measured anyway.
    """
    name, steps = f"{type(term).__name__}.prepare", rollout.weight.shape
    prepared = term.prepare(memory, rollout)
    rows, metrics = pair(name, prepared, "(examples, dict of metrics)", dict)
    for leaf in jax.tree.leaves(rows):
        if jnp.shape(leaf)[:2] != steps:
            expected = f"arrays whose shape begins with {steps}, a row per step"
            raise Misfit(f"{name}: expected {expected}, got {kind(leaf)}")
    for what, value in named(name, metrics).items():
        require_shape(f"{name}: {what}", value, (), "a number")
    return rows, metrics


def remembered_by(term: Term, memory: PyTree, metrics: Metrics) -> PyTree:
    """Returns the memory of a term after an update.

    Raises:
        Misfit: If its structure, shapes or types have changed.
    """
    after = term.update(memory, metrics)
    tree.require_same(f"{type(term).__name__}.update", after, memory)
    return after

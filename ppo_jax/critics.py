"""Kinds of critic, one interface: what a head's numbers say about the return.

A `ValueDist` has leaves `[..., C, N]`: C critics, N numbers each. Nobody outside this
file knows which kind it is. A state is worth what the most pessimistic critic says:
the least of their means, everywhere.

Predictions and targets are in the same units: those of the return, or those of a
`ReturnScale`.
"""

import dataclasses
import math
from collections.abc import Callable
from typing import Any, ClassVar, Self

import jax
import jax.numpy as jnp
from flax import struct
from jax.typing import ArrayLike

from ppo_jax import losses
from ppo_jax.component import component, concrete, require, require_range
from ppo_jax.errors import missing, require_shape
from ppo_jax.losses import Law
from ppo_jax.return_scale import ReturnScale, preserve_outputs
from ppo_jax.types import Array, Metrics, PyTree


@struct.dataclass
class ValueDist:
    """What critics predict; `critic` is the kind that can read it.

    To keep predictions, keep `outputs`: the critic's own numbers have no batch axes.
    """

    outputs: PyTree
    """What the heads put out, leaves `[..., C, N]`."""
    critic: Any

    @property
    def clips(self) -> bool:
        """Whether `clip` does anything, and so whether old outputs are needed."""
        return self.critic.clip is not None

    def mean(self) -> Array:
        """Mean of every critic's prediction, `[..., C]`."""
        return self._said("mean", self.critic.mean)

    def cvar(self, alpha: ArrayLike) -> Array:
        """Mean of the worst share `alpha` of every critic's prediction, `[..., C]`."""
        return self._said("cvar", lambda outputs: self.critic.cvar(outputs, alpha))

    def loss(self, target: Array) -> Array:
        """Loss of every critic against sampled returns `[...]`, `[..., C]`."""
        return self._said("loss", lambda outputs: self.critic.loss(outputs, target))

    def clip(self, old: Self, eps: ArrayLike) -> "ValueDist":
        """The prediction kept within ±`eps` of an old one, each critic's of its own.

        How is the critic's `clip`; without one, nothing changes. PPO's clipped loss is
        `jnp.maximum(v.loss(y), v.clip(old, eps).loss(y))`, per critic and example; the
        target is never clipped.
        """
        if not self.clips:
            return self
        pairs = zip(self._each(), old._each(), strict=True)
        moved = [self.critic.clipped(new, before, eps) for new, before in pairs]
        outputs = [each.outputs for each in moved]
        outputs = jax.tree.map(lambda *each: jnp.stack(each, axis=-2), *outputs)
        return ValueDist(outputs, moved[0].critic)

    def _each(self) -> list[PyTree]:
        """What each critic puts out, leaves `[..., N]`.

        Slices of what was stacked are free; of a whole stack, XLA's loops on a CPU are
        far slower than those of its parts.
        """
        count = jax.tree.leaves(self.outputs)[0].shape[-2]
        return [
            jax.tree.map(lambda x, i=i: x[..., i, :], self.outputs)
            for i in range(count)
        ]

    def _said(self, name: str, of: Callable[[PyTree], Array]) -> Array:
        """A number of each critic, `[..., C]`."""
        each, method = self._each(), f"{type(self.critic).__name__}.{name}"
        found = [of(outputs) for outputs in each]
        shape = jax.tree.leaves(each)[0].shape[:-1]
        for value in found:
            require_shape(method, value, shape, "a number per prediction")
        return jnp.stack(found, axis=-1)


def pessimistic(value: ValueDist) -> Array:
    """What a state is worth: the least of the critics' means, `[...]`.

    >>> twins = ValueDist(jnp.array([[[3.0], [2.0]]]), critic=Scalar())
    >>> pessimistic(twins).tolist()
    [2.0]
    """
    return value.mean().min(axis=-1)


def pessimistic_cvar(value: ValueDist, alpha: ArrayLike) -> Array:
    """The CVaR that the critic with the least mean predicts, `[...]`.

    >>> twins = ValueDist(jnp.array([[0.0, 9.0], [3.0, 4.0]]), critic=Quantile(2))
    >>> float(pessimistic_cvar(twins, 0.5))  # Of means 4.5 and 3.5.
    3.0
    """
    least = jnp.argmin(value.mean(), axis=-1, keepdims=True)
    return jnp.take_along_axis(value.cvar(alpha), least, axis=-1)[..., 0]


@component
class Clip:
    """How a predicted law is kept close to an old one."""

    def __call__(self, new: Law, old: Law, eps: ArrayLike) -> Array:
        """The outcomes of `new` moved to within ±`eps` of `old`, `[..., N]`."""
        raise missing(self, "__call__")


@component
class PerQuantile(Clip):
    """Every quantile stays within ±ε of the same quantile; the strictest."""

    def __call__(self, new: Law, old: Law, eps: ArrayLike) -> Array:
        return losses.clip_each(new.outcomes, old.outcomes, eps)


@component
class MeanOnly(Clip):
    """The mean stays within ±ε of the old one; the spread may become anything."""

    def __call__(self, new: Law, old: Law, eps: ArrayLike) -> Array:
        return losses.clip_mean(new, old, eps)


@component
class MeanAndVariance(Clip):
    """As `MeanOnly`, and the deviation stays below `factor` times the old one.

    Attributes:
        factor: Largest growth of the standard deviation in an update, ≥ 1.

    Raises:
        ValueError: At construction, for a factor below 1.
    """

    factor: float = 2.0

    def validate(self) -> None:
        """Raises a `ValueError` for a factor below 1."""
        require_range(self, "factor", "a number ≥ 1", lambda factor: factor >= 1)

    def __call__(self, new: Law, old: Law, eps: ArrayLike) -> Array:
        return losses.clip_mean_and_std(new, old, eps, self.factor)


@component
class Critic:
    """How many numbers a head puts out and what they mean.

    Attributes:
        clip: How value clipping moves a prediction; None: no clipping.
    """

    clip: Clip | None = dataclasses.field(default=None, kw_only=True)

    rescalable: ClassVar[bool] = True
    """Whether `rescale` can follow a moving return scale."""
    distributional: ClassVar[bool] = True
    """Whether more than a mean is predicted."""

    @property
    def num_outputs(self) -> int:
        """N, the numbers that one critic puts out for a state."""
        raise missing(self, "num_outputs")

    def law(self, outputs: PyTree) -> Law:
        """The law that outputs stand for, `[..., N]`."""
        raise missing(self, "law")

    def mean(self, outputs: PyTree) -> Array:
        """Expected return, `[..., N]` to `[...]`."""
        return self.law(outputs).mean()

    def cvar(self, outputs: PyTree, alpha: ArrayLike) -> Array:
        """Mean of the worst share `alpha` of returns, `[..., N]` to `[...]`."""
        return losses.law_cvar(self.law(outputs), alpha)

    def loss(self, outputs: PyTree, target: Array) -> Array:
        """Loss per example, `[..., N]` and `[...]` to `[...]`."""
        raise missing(self, "loss")

    def target_metrics(self, target: Array) -> Metrics:
        """What is to be known of targets `[...]` with this kind, per example."""
        del target
        return {}

    def clipped(self, outputs: PyTree, old: PyTree, eps: ArrayLike) -> ValueDist:
        """The prediction with outcomes within `eps` of old ones; needs a `clip`."""
        assert self.clip is not None
        outcomes = self.clip(self.law(outputs), self.law(old), eps)
        return ValueDist(outcomes, self)

    def rescale(
        self, kernel: Array, bias: Array, old: ReturnScale, new: ReturnScale
    ) -> tuple[Array, Array]:
        """The last layer that predicts under `new` what it predicted under `old`.

        Args:
            kernel: Weights of the heads, `[..., N]`.
            bias: Biases of the heads, `[..., N]`.
            old: The scale that the outputs are in.
            new: The scale that they shall be in.

        Raises:
            TypeError: If the kind is not `rescalable`.
        """
        return preserve_outputs(kernel, bias, old, new)


@component
class Scalar(Critic):
    """One number, the expected return; squared error ½ (y − v)².

    Attributes:
        clip: `MeanOnly()`, PPO's value clipping; None: no clipping.
    """

    clip: MeanOnly | None = dataclasses.field(default=None, kw_only=True)

    distributional = False

    @property
    def num_outputs(self) -> int:
        return 1

    def law(self, outputs: Array) -> Law:
        return Law(outputs, jnp.ones_like(outputs))

    def cvar(self, outputs: Array, alpha: ArrayLike) -> Array:
        del alpha
        return outputs[..., 0]

    def loss(self, outputs: Array, target: Array) -> Array:
        return losses.squared_error(outputs[..., 0], target)


@component
class Tail:
    """How the CVaR of quantiles is taken."""

    def __call__(self, quantiles: Array, alpha: ArrayLike) -> Array:
        """CVaR_α of quantiles in any order, `[..., N]` to `[...]`."""
        raise missing(self, "__call__")


@component
class StepTail(Tail):
    """The exact CVaR of N equally likely outcomes; see `losses.cvar_weights`."""

    def __call__(self, quantiles: Array, alpha: ArrayLike) -> Array:
        return losses.cvar(quantiles, alpha)


@component
class LinearTail(Tail):
    """CVaR of the lines through the quantiles; see `losses.linear_cvar_weights`."""

    def __call__(self, quantiles: Array, alpha: ArrayLike) -> Array:
        return losses.cvar(quantiles, alpha, losses.linear_cvar_weights)


@component
class Quantile(Critic):
    """Quantiles of the return at the midpoints (i + ½) / N.

    Predictions closer to a target than κ are pulled as by a squared error: the learned
    numbers are quantiles where κ is small against the spread of returns, and tend to
    expectiles, which are closer together, where it is large.

    Attributes:
        num_quantiles: N ≥ 1.
        kappa: Where the Huber loss turns from a square to a line, > 0.
        tail: How CVaR is taken from them, `StepTail` or `LinearTail`.
        clip: `PerQuantile`, `MeanOnly` or `MeanAndVariance`; None: no clipping.

    Raises:
        ValueError: At construction, for a number out of its range.
    """

    num_quantiles: int = 32
    kappa: float = 1.0
    tail: Tail = StepTail()

    def validate(self) -> None:
        """Raises a `ValueError` for a number out of its range."""
        name = "Quantile.num_quantiles"
        require(self.num_quantiles >= 1, name, self.num_quantiles, "at least 1")
        require_range(self, "kappa", "a number > 0", lambda kappa: kappa > 0)

    @property
    def num_outputs(self) -> int:
        return self.num_quantiles

    def law(self, outputs: Array) -> Law:
        return Law(outputs, jnp.full_like(outputs, 1 / self.num_quantiles))

    def mean(self, outputs: Array) -> Array:
        return outputs.mean(axis=-1)

    def cvar(self, outputs: Array, alpha: ArrayLike) -> Array:
        return self.tail(outputs, alpha)

    def loss(self, outputs: Array, target: Array) -> Array:
        return losses.quantile_huber_loss(outputs, target, self.kappa)


@component
class Categorical(Critic):
    """Logits of evenly spaced returns, the atoms (C51); cross-entropy.

    The support is fixed: targets outside count as its ends, and a softmax cannot follow
    a moving return scale exactly. The loss is about ln N at first; a value coefficient
    divided by ln N makes it comparable over N.

    Attributes:
        num_atoms: N ≥ 2.
        v_min: The lowest return, in the units of the targets.
        v_max: The highest, more than `v_min`.
        clip: `MeanOnly` or `MeanAndVariance`; None: no clipping.

    Raises:
        ValueError: At construction, for a number out of its range.
        TypeError: At construction, for a way of clipping that atoms do not have.

    References:
        Bellemare et al., `A Distributional Perspective on Reinforcement Learning
        <https://arxiv.org/abs/1707.06887>`_, 2017.
    """

    num_atoms: int = 51
    v_min: float = -10.0
    v_max: float = 10.0
    clip: MeanOnly | MeanAndVariance | None = dataclasses.field(
        default=None, kw_only=True
    )

    rescalable = False

    def validate(self) -> None:
        """Raises a `ValueError` for a number out of its range."""
        name = f"{type(self).__name__}.num_atoms"
        require(self.num_atoms >= 2, name, self.num_atoms, "at least 2")
        require_range(self, "v_min", "a finite number", math.isfinite)
        require_range(self, "v_max", "a finite number", math.isfinite)
        if concrete(self.v_min):
            expected = f"more than v_min = {self.v_min}"
            require_range(self, "v_max", expected, lambda v_max: v_max > self.v_min)

    @property
    def num_outputs(self) -> int:
        return self.num_atoms

    @property
    def atoms(self) -> Array:
        """The returns that probabilities are given to, float32 `[N]`."""
        return losses.evenly_spaced_atoms(self.num_atoms, self.v_min, self.v_max)

    def law(self, outputs: PyTree) -> Law:
        outcomes = jnp.broadcast_to(self.atoms, outputs.shape)
        return Law(outcomes, jax.nn.softmax(outputs.astype(jnp.float32)))

    def loss(self, outputs: PyTree, target: Array) -> Array:
        return losses.cross_entropy_loss(outputs, target, self.atoms)

    def target_metrics(self, target: Array) -> Metrics:
        return {
            "train/value_target_below_frac": (target < self.v_min).astype(jnp.float32),
            "train/value_target_above_frac": (target > self.v_max).astype(jnp.float32),
        }

    def clipped(self, outputs: Array, old: Array, eps: ArrayLike) -> ValueDist:
        new = self.law(outputs)
        moved = super().clipped(outputs, old, eps)
        critic = _OffAtoms(self.num_atoms, self.v_min, self.v_max)
        return ValueDist(new._replace(outcomes=moved.outputs), critic)

    def rescale(
        self, kernel: Array, bias: Array, old: ReturnScale, new: ReturnScale
    ) -> tuple[Array, Array]:
        raise TypeError("Categorical: a softmax cannot be rescaled exactly")


@component
class _OffAtoms(Categorical):
    """What clipping makes of a categorical prediction: a law beside the atoms.

    Its outputs are that law. It is trained as its projection onto the atoms, which is
    evaluated only where the target lies.
    """

    def law(self, outputs: Law) -> Law:
        return outputs._replace(
            outcomes=jnp.clip(outputs.outcomes, self.v_min, self.v_max)
        )

    def loss(self, outputs: Law, target: Array) -> Array:
        return losses.shifted_cross_entropy(outputs, target, self.atoms)

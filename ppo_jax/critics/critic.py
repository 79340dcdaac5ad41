"""The interface of critics, and the joint prediction of several critics.

A `ValueDist` has leaves `[..., C, N]`: C critics, N numbers each. Only this package
knows which kind of critic it comes from. The value of a state is always the prediction
of the most pessimistic critic: the least of the critics' means.

Predictions and targets are in the same units: those of the return, or those of a
`ReturnScale`.
"""

import dataclasses
from collections.abc import Callable
from typing import Any, ClassVar, Self

import jax
import jax.numpy as jnp
from flax import struct
from jax.typing import ArrayLike

from ppo_jax import losses
from ppo_jax.component import component
from ppo_jax.critics.clipping import Clip
from ppo_jax.errors import missing, require_shape
from ppo_jax.losses import Law
from ppo_jax.normalization.return_scale import ReturnScale, preserve_outputs
from ppo_jax.types import Array, Metrics, PyTree


@struct.dataclass
class ValueDist:
    """Predictions of critics, with the kind of critic that can read them.

    To keep predictions, keep `outputs`: the critic's own numbers have no batch axes.
    """

    outputs: PyTree
    """The outputs of the heads, leaves `[..., C, N]`."""
    critic: Any

    @property
    def clips(self) -> bool:
        """Whether `clip` changes predictions and therefore needs old outputs."""
        return self.critic.clip is not None

    def mean(self) -> Array:
        """Returns the mean of every critic's prediction, `[..., C]`."""
        return self._said("mean", self.critic.mean)

    def cvar(self, alpha: ArrayLike) -> Array:
        """Returns every critic's mean of its worst share `alpha`, `[..., C]`."""
        return self._said("cvar", lambda outputs: self.critic.cvar(outputs, alpha))

    def loss(self, target: Array) -> Array:
        """Returns the loss of every critic `[..., C]` on sampled returns `[...]`."""
        return self._said("loss", lambda outputs: self.critic.loss(outputs, target))

    def clip(self, old: Self, eps: ArrayLike) -> "ValueDist":
        """Returns the predictions, each kept within ±`eps` of its critic's old one.

        The critic's `clip` defines how; without one, nothing changes. PPO's clipped
        loss is `jnp.maximum(v.loss(y), v.clip(old, eps).loss(y))`, per critic and
        example; the target is never clipped.
        """
        if not self.clips:
            return self
        pairs = zip(self._each(), old._each(), strict=True)
        moved = [self.critic.clipped(new, before, eps) for new, before in pairs]
        outputs = [each.outputs for each in moved]
        outputs = jax.tree.map(lambda *each: jnp.stack(each, axis=-2), *outputs)
        return ValueDist(outputs, moved[0].critic)

    def _each(self) -> list[PyTree]:
        """Returns the outputs of each critic by itself, leaves `[..., N]`.

        Slicing outputs that were stacked costs nothing. On a CPU, XLA's loops over a
        whole stack are far slower than loops over its parts.
        """
        count = jax.tree.leaves(self.outputs)[0].shape[-2]
        return [
            jax.tree.map(lambda x, i=i: x[..., i, :], self.outputs)
            for i in range(count)
        ]

    def _said(self, name: str, of: Callable[[PyTree], Array]) -> Array:
        """Returns one number per critic, `[..., C]`, after checking its shape."""
        each, method = self._each(), f"{type(self.critic).__name__}.{name}"
        found = [of(outputs) for outputs in each]
        shape = jax.tree.leaves(each)[0].shape[:-1]
        for value in found:
            require_shape(method, value, shape, "a number per prediction")
        return jnp.stack(found, axis=-1)


def pessimistic(value: ValueDist) -> Array:
    """Returns the value of a state: the least of the critics' means, `[...]`.

    >>> from ppo_jax.critics import Scalar
    >>> twins = ValueDist(jnp.array([[[3.0], [2.0]]]), critic=Scalar())
    >>> pessimistic(twins).tolist()
    [2.0]
    """
    return value.mean().min(axis=-1)


def pessimistic_cvar(value: ValueDist, alpha: ArrayLike) -> Array:
    """Returns the CVaR that the critic with the least mean predicts, `[...]`.

    >>> from ppo_jax.critics import Quantile
    >>> twins = ValueDist(jnp.array([[0.0, 9.0], [3.0, 4.0]]), critic=Quantile(2))
    >>> float(pessimistic_cvar(twins, 0.5))  # Of means 4.5 and 3.5.
    3.0
    """
    least = jnp.argmin(value.mean(), axis=-1, keepdims=True)
    return jnp.take_along_axis(value.cvar(alpha), least, axis=-1)[..., 0]


@component
class Critic:
    """A kind of critic: the number of a head's outputs, and their meaning.

    Attributes:
        clip: Rule by which value clipping moves a prediction; None: no clipping.
    """

    clip: Clip | None = dataclasses.field(default=None, kw_only=True)

    rescalable: ClassVar[bool] = True
    """Whether `rescale` can follow a moving return scale."""
    distributional: ClassVar[bool] = True
    """Whether the critic predicts more than a mean."""

    @property
    def num_outputs(self) -> int:
        """N, the count of numbers that one critic puts out for a state."""
        raise missing(self, "num_outputs")

    def law(self, outputs: PyTree) -> Law:
        """Returns the law that outputs stand for, `[..., N]`."""
        raise missing(self, "law")

    def mean(self, outputs: PyTree) -> Array:
        """Returns the expected return, `[..., N]` to `[...]`."""
        return self.law(outputs).mean()

    def cvar(self, outputs: PyTree, alpha: ArrayLike) -> Array:
        """Returns the mean of the worst share `alpha`, `[..., N]` to `[...]`."""
        outcomes, probs = jax.lax.sort(tuple(self.law(outputs)), num_keys=1)
        return losses.law_cvar(Law(outcomes, probs), alpha)

    def at(self, outputs: PyTree, levels: Array) -> Array:
        """Returns the quantiles of the return at levels `[K]`, `[N]` to `[K]`."""
        outcomes, probs = jax.lax.sort(tuple(self.law(outputs)), num_keys=1)
        reached = jnp.cumsum(probs) / probs.sum()
        first = jnp.searchsorted(reached, levels - 1e-6)
        return outcomes[jnp.minimum(first, reached.size - 1)]

    def loss(self, outputs: PyTree, target: Array) -> Array:
        """Returns the loss per example, `[..., N]` and `[...]` to `[...]`."""
        raise missing(self, "loss")

    def target_metrics(self, target: Array) -> Metrics:
        """Returns metrics of targets `[...]` for this kind of critic, per example."""
        return {}

    def clipped(self, outputs: PyTree, old: PyTree, eps: ArrayLike) -> ValueDist:
        """Returns the prediction, outcomes within `eps` of `old`; needs a `clip`."""
        assert self.clip is not None
        outcomes = self.clip(self.law(outputs), self.law(old), eps)
        return ValueDist(outcomes, self)

    def rescale(
        self, kernel: Array, bias: Array, old: ReturnScale, new: ReturnScale
    ) -> tuple[Array, Array]:
        """Returns the last layer that makes the same predictions under `new`.

        Args:
            kernel: Weights of the heads, `[..., N]`.
            bias: Biases of the heads, `[..., N]`.
            old: The scale of the outputs so far.
            new: The scale of the outputs from now on.

        Raises:
            TypeError: If the kind is not `rescalable`.
        """
        return preserve_outputs(kernel, bias, old, new)

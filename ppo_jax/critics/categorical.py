"""A critic of probabilities of fixed returns."""

import dataclasses

import jax
import jax.numpy as jnp
from jax.typing import ArrayLike

from ppo_jax import losses
from ppo_jax.component import component, concrete, require_range
from ppo_jax.component.bounds import Finite, Several
from ppo_jax.critics.clipping import MeanAndVariance, MeanOnly
from ppo_jax.critics.critic import Critic, ValueDist
from ppo_jax.losses import Law
from ppo_jax.normalization.return_scale import ReturnScale
from ppo_jax.types import Array, Metrics, PyTree


@component
class Categorical(Critic):
    """Logits of evenly spaced returns, the atoms (C51), learned by cross-entropy.

    The support is fixed: targets outside it count as its ends, and a softmax cannot
    follow a moving return scale exactly. The loss is about ln N at first; a value
    coefficient divided by ln N makes it comparable over N.

    Attributes:
        num_atoms: Number of atoms N ≥ 2.
        v_min: The lowest return, in the units of the targets.
        v_max: The highest return, more than `v_min`.
        clip: `MeanOnly` or `MeanAndVariance`; None: no clipping.

    Raises:
        ValueError: At construction, for a number out of its range.
        TypeError: At construction, for a `clip` that atoms do not support.

    References:
        Bellemare et al., `A Distributional Perspective on Reinforcement Learning
        <https://arxiv.org/abs/1707.06887>`_, 2017.
    """

    num_atoms: Several = 51
    v_min: Finite[float] = -10.0
    v_max: Finite[float] = 10.0
    clip: MeanOnly | MeanAndVariance | None = dataclasses.field(
        default=None, kw_only=True
    )

    rescalable = False

    def validate(self) -> None:
        """Raises a `ValueError` for bounds out of order."""
        if concrete(self.v_min):
            expected = f"more than v_min = {self.v_min}"
            require_range(self, "v_max", expected, lambda v_max: v_max > self.v_min)

    @property
    def num_outputs(self) -> int:
        return self.num_atoms

    @property
    def atoms(self) -> Array:
        """The returns that have a probability each, float32 `[N]`."""
        return losses.evenly_spaced_atoms(self.num_atoms, self.v_min, self.v_max)

    def law(self, outputs: PyTree) -> Law:
        outcomes = jnp.broadcast_to(self.atoms, outputs.shape)
        return Law(outcomes, jax.nn.softmax(outputs.astype(jnp.float32)))

    def cvar(self, outputs: PyTree, alpha: ArrayLike) -> Array:
        return losses.law_cvar(self.law(outputs), alpha)  # Atoms ascend.

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
    """A categorical prediction after clipping, whose outcomes lie beside the atoms.

    Its outputs are a `Law`. The loss is that of the law's projection onto the atoms,
    which is evaluated only where the target lies.
    """

    def law(self, outputs: Law) -> Law:
        return outputs._replace(
            outcomes=jnp.clip(outputs.outcomes, self.v_min, self.v_max)
        )

    def loss(self, outputs: Law, target: Array) -> Array:
        return losses.shifted_cross_entropy(outputs, target, self.atoms)

"""A critic of one number, the mean."""

import dataclasses

import jax.numpy as jnp
from jax.typing import ArrayLike

from ppo_jax import losses
from ppo_jax.component import component
from ppo_jax.critics.clipping import MeanOnly
from ppo_jax.critics.critic import Critic
from ppo_jax.losses import Law
from ppo_jax.types import Array


@component
class Scalar(Critic):
    """The expected return as a single number, learned by squared error ½ (y − v)².

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
        return outputs[..., 0]

    def loss(self, outputs: Array, target: Array) -> Array:
        return losses.squared_error(outputs[..., 0], target)

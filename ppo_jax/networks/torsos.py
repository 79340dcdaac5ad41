"""Torsos: layers that turn observations into features."""

import dataclasses
from typing import Any

import jax
import jax.numpy as jnp

from ppo_jax.component import component, require
from ppo_jax.component.bounds import Count
from ppo_jax.errors import missing
from ppo_jax.networks.layers import Activation, Layers, convolved
from ppo_jax.types import Array, PyTree


@component
class Torso:
    """Layers that turn observations into features.

    A torso of your own has a `__call__` in flax that makes its layers inline.

    Attributes:
        activation: Activation between layers, also between those of `critic_hidden`.

    >>> import flax.linen as nn
    >>> @component
    ... class Leaky(Torso):
    ...     slope: float = 0.1
    ...
    ...     def __call__(self, obs):
    ...         return nn.leaky_relu(nn.Dense(8)(obs), self.slope)
    """

    activation: Activation = dataclasses.field(default="tanh", kw_only=True)

    def check(self, config: Any) -> None:
        """Checks that the torso fits an experiment, when that is constructed.

        Raises:
            ValueError: If it does not fit, for instance the shapes of
                `config.network.read(config.obs_spec())`.
        """

    def __call__(self, obs: PyTree) -> Array:
        """Returns features `[T, B, n]` of observations `[T, B, ...]`."""
        raise missing(self, "__call__")


@component
class Mlp(Torso):
    """Dense layers over the flattened observation."""

    hidden: tuple[Count, ...] = (64, 64)

    def __call__(self, obs: PyTree) -> Array:
        leaves = [x.astype(jnp.float32) for x in jax.tree.leaves(obs)]
        flat = [x.reshape(*x.shape[:2], -1) for x in leaves]
        # Flax derives the keys of initial parameters from the name.
        layers = Layers(self.hidden, self.activation, name="_Layers_0")
        return layers(jnp.concatenate(flat, axis=-1))


@component
class Cnn(Mlp):
    """3×3 convolutions over grids `[H, W, features]`, then dense layers."""

    hidden: tuple[Count, ...] = (128,)
    channels: tuple[Count, ...] = (16,)
    activation: Activation = dataclasses.field(default="relu", kw_only=True)

    def check(self, config: Any) -> None:
        read = jax.tree.leaves(config.network.read(config.obs_spec()))
        shapes = list(dict.fromkeys(x.shape for x in read))
        grids = [shape for shape in shapes if len(shape) == 3]
        expected = "observations with grids [H, W, features]"
        require(bool(grids), "Cnn", shapes, expected)
        for height, width, _ in grids:
            most = (min(height, width) - 1) // 2
            expected = (
                f"at most {most} layers for grids of {height}×{width}, each of which "
                "takes 2 off height and width"
            )
            require(len(self.channels) <= most, "Cnn.channels", self.channels, expected)

    def __call__(self, obs: PyTree) -> Array:
        leaves = [x.astype(jnp.float32) for x in jax.tree.leaves(obs)]
        return super().__call__([self._seen(x) if x.ndim == 5 else x for x in leaves])

    def _seen(self, grids: Array) -> Array:
        return convolved(grids, self.channels, self.activation)

"""Layers that torsos, memories and heads are made of, in flax.

They are made where they are used, within the call of a module.
"""

import functools
from typing import Any, Literal

import flax.linen as nn
import jax
import jax.numpy as jnp
from flax.errors import ScopeParamShapeError

from ppo_jax.arrays import tree
from ppo_jax.component import require
from ppo_jax.networks.products import product
from ppo_jax.types import Array

Activation = Literal["tanh", "relu", "leaky_relu", "elu", "gelu", "silu"]


def as_kernel(inputs: Any, *weights: Any, **_: Any) -> Any:
    """A layer computes in the type that its kernel, the first weight, is given in."""
    return inputs.astype(weights[0].dtype), *weights


class Dense(nn.Dense):
    """A product with rows: all axes but the last are one.

    With time and environments apart, gradients of a long minibatch take a CPU longer.
    """

    promote_dtype: Any = as_kernel
    dot_general: Any = lambda rows, kernel, _, precision, **__: product(
        rows, kernel, precision
    )

    def __call__(self, inputs: Array) -> Array:
        rows = inputs.reshape(-1, inputs.shape[-1])
        return super().__call__(rows).reshape(*inputs.shape[:-1], -1)

    def param(self, name: str, init: Any, *given: Any, **how: Any) -> Any:
        """As in flax, but of a weight that is there no other is made to compare with.

        That would be a seventh of what it takes to trace an update.
        """
        if not self.has_variable("params", name):
            return super().param(name, init, *given, **how)
        weight, (shape, *_) = self.get_variable("params", name), given
        scope: Any = self.scope
        if weight.shape != shape:
            raise ScopeParamShapeError(name, scope.path_text, weight.shape, shape)
        return weight


dense = functools.partial(Dense, bias_init=nn.initializers.zeros)
last = functools.partial(dense, name="head", precision=jax.lax.Precision.HIGHEST)
"""A layer that says something: it multiplies with all digits on every platform."""


def orthogonal(scale: float) -> nn.initializers.Initializer:
    """Orthogonal matrices, one after the other under `vmap`.

    On a CPU, jax 0.10's batched QR waits for threads of the pool that it occupies: a
    few at a time stop the process for ever.
    """
    batched = nn.initializers.orthogonal(scale)

    def init(key, shape, dtype=jnp.float32, out_sharding=None):
        one = jax.custom_batching.sequential_vmap(lambda k: batched(k, shape, dtype))
        return one(key)

    return init


class Layers(nn.Module):
    """Dense layers with an activation after each."""

    hidden: tuple[int, ...]
    activation: str

    @nn.compact
    def __call__(self, x: Array) -> Array:
        for size in self.hidden:
            init = orthogonal(2**0.5)
            x = getattr(nn, self.activation)(dense(size, kernel_init=init)(x))
        return x


def convolved(x: Array, channels: tuple[int, ...], activation: str) -> Array:
    """Grids `[T, B, H, W, features]` after 3×3 convolutions."""
    grids = tree.merge_leading(x)
    for count in channels:
        init = orthogonal(2**0.5)
        layer = nn.Conv(
            count, (3, 3), padding="VALID", kernel_init=init, promote_dtype=as_kernel
        )
        grids = getattr(nn, activation)(layer(grids))
    return grids.reshape(*x.shape[:2], *grids.shape[1:])


def require_sizes(name: str, sizes: tuple[int, ...]) -> None:
    """Raises a `ValueError` for a layer without units."""
    require(all(size >= 1 for size in sizes), name, sizes, "sizes of at least 1")

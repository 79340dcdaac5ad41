"""Layers that torsos, memories and heads are made of, in flax.

They are made where they are used, within the call of a module.
"""

import functools
from collections.abc import Callable
from typing import Any, Literal

import flax.linen as nn
import jax
import jax.numpy as jnp
from flax.errors import ScopeParamShapeError
from jax.core import Tracer

from ppo_jax.arrays import tree
from ppo_jax.networks.products import product
from ppo_jax.types import Array, Key

Activation = Literal["tanh", "relu", "leaky_relu", "elu", "gelu", "silu"]


def as_kernel(inputs: Any, kernel: Array, bias: Array | None, **_: Any) -> Any:
    """Converts a layer's inputs to the type of its kernel, and its bias to float32.

    So what the layer gives is of the latter type, and the gradient of the bias, a sum
    over all rows, has all digits, also on GPUs that can add short floats.
    """
    long = bias if bias is None else bias.astype(jnp.promote_types(bias.dtype, "f4"))
    return inputs.astype(kernel.dtype), kernel, long


class Dense(nn.Dense):
    """A dense layer that merges all axes of its inputs but the last into one of rows.

    With separate axes for time and environments, a CPU takes longer for gradients of a
    long minibatch.
    """

    promote_dtype: Any = as_kernel
    dot_general: Any = lambda rows, kernel, _, precision, **__: product(
        rows, kernel, precision
    )

    def __call__(self, inputs: Array) -> Array:
        rows = inputs.reshape(-1, inputs.shape[-1])
        given = _of_kernel(self, super().__call__(rows))
        return given.reshape(*inputs.shape[:-1], -1)

    def param(self, name: str, init: Any, *given: Any, **how: Any) -> Any:
        """Returns a weight as flax does, but without making another to compare with it.

        Making another one would take a seventh of the time for tracing an update.
        """
        if not self.has_variable("params", name):
            return super().param(name, init, *given, **how)
        weight, (shape, *_) = self.get_variable("params", name), given
        scope: Any = self.scope
        if weight.shape != shape:
            raise ScopeParamShapeError(name, scope.path_text, weight.shape, shape)
        return weight


class Conv(nn.Conv):
    """A convolution that computes in the type of its kernel."""

    promote_dtype: Any = as_kernel

    def __call__(self, inputs: Array) -> Array:
        return _of_kernel(self, super().__call__(inputs))


def _of_kernel(layer: nn.Module, x: Array) -> Array:
    """Converts what a layer gives to the type of its kernel."""
    return x.astype(layer.get_variable("params", "kernel").dtype)


dense = functools.partial(Dense, bias_init=nn.initializers.zeros)
last = functools.partial(dense, name="head", precision=jax.lax.Precision.HIGHEST)
"""Maker of a network's last layers, which multiply with all digits on all platforms."""


def orthogonal(scale: float) -> nn.initializers.Initializer:
    """Returns an initialiser of orthogonal matrices, one after the other under `vmap`.

    On a CPU, jax 0.10's batched QR waits for threads of the pool that it occupies: a
    few at a time cause a deadlock.
    """

    def init(key, shape, dtype=jnp.float32, out_sharding=None):
        return _compiled(_orthogonal(scale, shape, dtype), key)

    return init


@functools.cache
def _orthogonal(
    scale: float, shape: tuple[int, ...], dtype: jnp.dtype
) -> Callable[[Key], Array]:
    """Returns a function that draws an orthogonal matrix, also for each of many keys.

    It is cached, so that outside of programs a shape is compiled once.
    """
    batched = nn.initializers.orthogonal(scale)
    draw = jax.custom_batching.custom_vmap(lambda key: batched(key, shape, dtype))

    def many(keys):
        return jax.lax.map(draw, keys)

    draw.def_vmap(lambda size, are_many, keys: (_compiled(many, keys), True))
    return draw


def _compiled(function: Callable[[Key], Array], key: Key) -> Array:
    """Returns the result of a function, which is compiled if no program traces it."""
    return function(key) if isinstance(key, Tracer) else jax.jit(function)(key)


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
    """Applies 3×3 convolutions to grids `[T, B, H, W, features]`."""
    grids = tree.merge_leading(x)
    for count in channels:
        init = orthogonal(2**0.5)
        layer = Conv(count, (3, 3), padding="VALID", kernel_init=init)
        grids = getattr(nn, activation)(layer(grids))
    return grids.reshape(*x.shape[:2], *grids.shape[1:])

"""Products of rows with a kernel, in forms that are fast on CPUs."""

import functools

import jax
import jax.numpy as jnp

from ppo_jax.arrays.platforms import by_platform
from ppo_jax.types import Array

Precision = jax.lax.Precision | None

FEW = 1024
"""Multiplications up to which a written-out product is faster than a call of one."""


@functools.partial(jax.custom_vjp, nondiff_argnums=(2,))
def product(rows: Array, kernel: Array, precision: Precision = None) -> Array:
    """Returns rows `[R, n]` times a kernel `[n, m]`.

    On a CPU, products of up to `FEW` multiplications, as in a step of some
    environments, are written out, so that they are fused with later operations. Those
    of types shorter than float32 are not, since a called product adds up in a longer
    type.

    Args:
        rows: The rows.
        kernel: The kernel.
        precision: Digits with which a GPU or a TPU multiplies, here and in gradients;
            None: JAX's default.
    """
    called = functools.partial(jnp.matmul, precision=precision)
    count = rows.size * kernel.shape[1]  # A symbol in exports for any batch size.
    if isinstance(count, int) and count <= FEW and kernel.dtype == jnp.float32:
        return by_platform(rows, kernel, cpu=_written, default=called)
    return called(rows, kernel)


def _written(rows: Array, kernel: Array) -> Array:
    return (rows[:, :, None] * kernel[None]).sum(axis=1)


def kernel_gradient(
    rows: Array, gradients: Array, precision: Precision = None
) -> Array:
    """Returns the gradient by a kernel `[n, m]`.

    With one output it is computed as a product with one row: a product with one column
    takes a CPU 3 to 30 times as long.

    Args:
        rows: Rows that the kernel was multiplied with, `[R, n]`.
        gradients: Gradients of the products, `[R, m]`.
        precision: Digits of multiplications, as for `product`.
    """
    if gradients.shape[-1] == 1:
        return jnp.matmul(gradients.T, rows, precision=precision).T
    return jnp.matmul(across(rows), gradients, precision=precision)


def across(x: Array) -> Array:
    """Returns the transpose, which a CPU writes to memory.

    XLA's product along the first axes of two matrices takes a CPU 1.5 to 2.5 times as
    long as a product with the first matrix transposed before, and 10 times with few
    outputs.
    """
    return by_platform(x.T, cpu=jax.lax.optimization_barrier, default=lambda x: x)


Pair = tuple[Array, Array]
"""Rows and a kernel, or their gradients."""


def _forward(rows: Array, kernel: Array, precision: Precision) -> tuple[Array, Pair]:
    return product(rows, kernel, precision), (rows, kernel)


def _backward(precision: Precision, saved: Pair, gradients: Array) -> Pair:
    rows, kernel = saved
    d_rows = jnp.matmul(gradients, kernel.T, precision=precision)
    return d_rows, kernel_gradient(rows, gradients, precision)


product.defvjp(_forward, _backward)

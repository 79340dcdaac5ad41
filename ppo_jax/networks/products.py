"""Products of rows with a kernel, as they suit CPUs."""

import functools

import jax
import jax.numpy as jnp

from ppo_jax.types import Array

Precision = jax.lax.Precision | None

FEW = 1024
"""Multiplications that are done sooner than a product is called."""


@functools.partial(jax.custom_vjp, nondiff_argnums=(2,))
def product(rows: Array, kernel: Array, precision: Precision = None) -> Array:
    """Returns rows `[R, n]` times a kernel `[n, m]`.

    A CPU writes out few of them, as in a step of some environments, to fuse them with
    what is done with them. Short numbers are not written out: a product adds up in
    longer ones.

    Args:
        rows: The rows.
        kernel: The kernel.
        precision: With how many digits a GPU or a TPU multiplies, here and in
            gradients; None: as many as JAX does by default.
    """
    called = functools.partial(jnp.matmul, precision=precision)
    count = rows.size * kernel.shape[1]  # A symbol, of exports for any batch.
    if isinstance(count, int) and count <= FEW and kernel.dtype == jnp.float32:
        return jax.lax.platform_dependent(rows, kernel, cpu=_written, default=called)
    return called(rows, kernel)


def _written(rows: Array, kernel: Array) -> Array:
    return (rows[:, :, None] * kernel[None]).sum(axis=1)


def kernel_gradient(
    rows: Array, gradients: Array, precision: Precision = None
) -> Array:
    """Returns the gradient by a kernel `[n, m]`.

    With one output it is a product with one row: one with a column takes a CPU 3 to 30
    times as long.

    Args:
        rows: What the kernel was multiplied with, `[R, n]`.
        gradients: Of what came of it, `[R, m]`.
        precision: As that of `product`.
    """
    if gradients.shape[-1] == 1:
        return jnp.matmul(gradients.T, rows, precision=precision).T
    return jnp.matmul(across(rows), gradients, precision=precision)


def across(x: Array) -> Array:
    """A transpose, which lies in memory as such on a CPU.

    XLA's product along the first axes of two matrices takes a CPU 1.5 to 2.5 times as
    long as one with the first transposed before, and 10 times with few outputs.
    """
    return jax.lax.platform_dependent(
        x.T, cpu=jax.lax.optimization_barrier, default=lambda x: x
    )


Pair = tuple[Array, Array]
"""Rows and a kernel, or their gradients."""


def _forward(rows: Array, kernel: Array, precision: Precision) -> tuple[Array, Pair]:
    return product(rows, kernel, precision), (rows, kernel)


def _backward(precision: Precision, saved: Pair, gradients: Array) -> Pair:
    rows, kernel = saved
    d_rows = jnp.matmul(gradients, kernel.T, precision=precision)
    return d_rows, kernel_gradient(rows, gradients, precision)


product.defvjp(_forward, _backward)

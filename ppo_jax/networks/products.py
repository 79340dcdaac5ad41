"""Products of rows with a kernel, as they suit CPUs."""

import jax
import jax.numpy as jnp

from ppo_jax.types import Array

FEW = 1024
"""Multiplications that are done sooner than a product is called."""


@jax.custom_vjp
def product(rows: Array, kernel: Array) -> Array:
    """Rows `[R, n]` times a kernel `[n, m]`.

    Few of them, as in a step of some environments, are written out, to be fused with
    what is done with them. Short numbers are not: a product adds up in longer ones.
    """
    count = rows.size * kernel.shape[1]  # A symbol, of exports for any batch.
    if isinstance(count, int) and count <= FEW and kernel.dtype == jnp.float32:
        return (rows[:, :, None] * kernel[None]).sum(axis=1)
    return rows @ kernel


def kernel_gradient(rows: Array, gradients: Array) -> Array:
    """Gradient by a kernel `[n, m]`, of rows `[R, n]` and gradients `[R, m]`.

    Of one output it is a product with one row: one with a column takes a CPU 3 to 30
    times as long.
    """
    if gradients.shape[-1] == 1:
        return (gradients.T @ rows).T
    return across(rows) @ gradients


def across(x: Array) -> Array:
    """A transpose, which lies in memory as such on a CPU.

    XLA's product along the first axes of two matrices takes a CPU 1.5 to 2.5 times as
    long as one with the first transposed before, and 10 times with few outputs.
    """
    return jax.lax.platform_dependent(
        x.T, cpu=jax.lax.optimization_barrier, default=lambda x: x
    )


def _forward(rows: Array, kernel: Array) -> tuple[Array, tuple[Array, Array]]:
    return product(rows, kernel), (rows, kernel)


def _backward(saved: tuple[Array, Array], gradients: Array) -> tuple[Array, Array]:
    rows, kernel = saved
    return gradients @ kernel.T, kernel_gradient(rows, gradients)


product.defvjp(_forward, _backward)

"""Functions that XLA compiles by themselves.

What several kernels read, XLA writes into each of them if it is made of cheap
operations, however many these are. And where more than eight kernels are ready, a CPU
gives half of them to another thread, which takes longer to wake up than they take. What
is called has kernels of its own, and is ready as a whole.
"""

import functools
from collections.abc import Callable
from typing import Any

import jax
from jax.experimental.xla_metadata import set_xla_metadata


def apart(function: Callable[..., Any]) -> Callable[..., Any]:
    """A function of arrays that stays a call in what is compiled for a CPU.

    >>> apart(lambda x: x + x)(jax.numpy.ones(())).item()
    2.0
    """
    called = jax.jit(function)

    def kept(*args):
        return set_xla_metadata(called(*args), inlineable="false")

    def call(*args):
        return jax.lax.platform_dependent(*args, cpu=kept, default=called)

    return functools.wraps(function)(call)

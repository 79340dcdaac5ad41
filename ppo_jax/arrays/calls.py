"""Functions that XLA compiles by themselves.

XLA repeats a value in each kernel that reads it if the value is made of cheap
operations, however many these are. If more than eight kernels are ready, a CPU gives
half of them to another thread, which takes longer to wake up than the kernels take. A
called function has kernels of its own, and is ready as a whole.
"""

import functools
from collections.abc import Callable
from typing import Any

import jax
from jax.experimental.xla_metadata import set_xla_metadata


def apart(function: Callable[..., Any]) -> Callable[..., Any]:
    """Returns a function that stays a call in programs compiled for a CPU.

    >>> apart(lambda x: x + x)(jax.numpy.ones(())).item()
    2.0
    """
    called = jax.jit(function)

    def kept(*args):
        return set_xla_metadata(called(*args), inlineable="false")

    def call(*args):
        return jax.lax.platform_dependent(*args, cpu=kept, default=called)

    return functools.wraps(function)(call)

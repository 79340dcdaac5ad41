"""A value that a CPU computes in another way than the other platforms."""

from collections.abc import Callable
from typing import Any

import jax

from ppo_jax.types import PyTree


def by_platform(
    *args: PyTree, cpu: Callable[..., Any], default: Callable[..., Any]
) -> PyTree:
    """Computes a value in the way of a CPU, or in that of all other platforms.

    The devices of a mesh say which, and the other way is not traced. Without a mesh a
    program has both, and one of them is compiled.
    """
    device = jax.sharding.get_abstract_mesh().abstract_device
    if device is None:
        return jax.lax.platform_dependent(*args, cpu=cpu, default=default)
    # JAX 0.10.0 knows no platform of it; a CPU's kind is called as its platform is.
    return (cpu if device.device_kind == "cpu" else default)(*args)

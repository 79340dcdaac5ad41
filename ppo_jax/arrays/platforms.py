"""What a CPU computes in another way than the other platforms."""

from collections.abc import Callable
from typing import Any, TypeVar

import jax

from ppo_jax.types import PyTree

Choice = TypeVar("Choice")


def by_platform(
    *args: PyTree, cpu: Callable[..., Any], default: Callable[..., Any]
) -> PyTree:
    """Computes a value in the way of a CPU, or in that of all other platforms.

    The devices of a mesh say which, and the other way is not traced. Without a mesh a
    program has both, and one of them is compiled.
    """
    if (on_cpu := _is_cpu()) is None:
        return jax.lax.platform_dependent(*args, cpu=cpu, default=default)
    return (cpu if on_cpu else default)(*args)


def chosen(*, cpu: Choice, default: Choice) -> Choice:
    """Returns a constant for the devices of a mesh; without one, that of a CPU."""
    return default if _is_cpu() is False else cpu


def _is_cpu() -> bool | None:
    """Returns whether the devices of the mesh are those of a CPU; None without one."""
    device = jax.sharding.get_abstract_mesh().abstract_device
    # JAX 0.10.0 knows no platform of it; a CPU's kind is called as its platform is.
    return None if device is None else device.device_kind == "cpu"

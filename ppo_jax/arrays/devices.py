"""The devices that a process computes on; they are fixed once JAX has started."""

import os
import re
import sys
from importlib.util import find_spec
from typing import Any

import jax

from ppo_jax.errors import UserError

PLUGINS = ("jax_plugins", "libtpu")
"""Modules that exist if JAX was installed for accelerators."""
FEWEST_STEPS = 4096
"""Steps to compute at once on a CPU: its caches hold the data of some thousand."""


def prepare() -> bool:
    """Gives a CPU a device for every core, unless JAX has started already.

    Settings of the user stay. XLA's pool gets as many threads as there are cores, or
    as devices if there are more of them: a device that waits for another one blocks a
    thread.

    Returns:
        False if it was too late and there are fewer CPU devices than cores.
    """
    settings: Any = jax.config
    devices = max(_forced(), settings.jax_num_cpu_devices)
    if devices < 1:
        devices = cores()
        try:
            settings.update("jax_num_cpu_devices", devices)
        except RuntimeError:  # JAX has started.
            return jax.default_backend() != "cpu" or jax.device_count() >= devices
    os.environ.setdefault("NPROC", str(max(cores(), devices)))
    return True


def start() -> bool:
    """Prepares and starts JAX; prints a warning if an accelerator was not found.

    Returns:
        The result of `prepare`.

    Raises:
        UserError: If JAX cannot start on the platform that is asked for.
    """
    in_time = prepare()
    settings: Any = jax.config
    asked = settings.jax_platforms
    try:
        platform = jax.default_backend()
    except (RuntimeError, AssertionError) as error:
        given = f"JAX_PLATFORMS={asked}: " if asked else ""
        message = str(error) or "expected a platform with a device, found none"
        raise UserError(f"{given}{message}") from error
    if platform == "cpu" and not asked and any(map(find_spec, PLUGINS)):
        message = "no accelerator was found, so it is the CPU that computes"
        print(
            f"warning: {message}; with JAX_PLATFORMS=cpu it is meant", file=sys.stderr
        )
    return in_time


def cores() -> int:
    """Returns the number of cores that this process may use, or of all if unknown."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def _forced() -> int:
    """Returns how many CPU devices `XLA_FLAGS` asks for; 0: it does not."""
    flags = os.environ.get("XLA_FLAGS", "")
    found = re.search(r"xla_force_host_platform_device_count=(\d+)", flags)
    return int(found[1]) if found else 0

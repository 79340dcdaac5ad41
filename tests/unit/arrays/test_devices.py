"""A process computes on all cores that it may, unless it is too late or asked."""

import os

import pytest
from runs import python


@pytest.mark.parametrize(
    ("given", "devices", "threads"),
    [
        ({}, "cores", "cores"),
        ({"JAX_NUM_CPU_DEVICES": "3"}, "3", "max(cores, 3)"),
        (
            {"XLA_FLAGS": "--xla_force_host_platform_device_count=5"},
            "5",
            "max(cores, 5)",
        ),
        ({"NPROC": "9"}, "cores", "9"),
    ],
)
def test_a_cpu_has_a_device_for_every_core_and_a_thread_for_every_device(
    given, devices, threads
):
    """A device may wait for another one; what the user has set stays."""
    code = (
        "import os; from ppo_jax.arrays.devices import prepare; prepare();"
        "import jax;"
        "print(jax.device_count(), os.environ['NPROC'])"
    )
    names = {"cores": len(os.sched_getaffinity(0)), "max": max}
    without = {k: v for k, v in os.environ.items() if k not in ("NPROC", "XLA_FLAGS")}
    expected = f"{eval(devices, names)} {eval(threads, names)}"
    assert python(code, without | given) == expected

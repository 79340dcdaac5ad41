"""A process computes on all cores that it may, unless it is too late or asked."""

import os
from types import SimpleNamespace
from unittest.mock import Mock

import jax
import pytest
from runs import python

from ppo_jax.arrays import devices
from ppo_jax.errors import UserError


@pytest.mark.parametrize(
    ("given", "count", "threads"),
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
    given, count, threads
):
    """A device may wait for another one; what the user has set stays."""
    code = (
        "import os; from ppo_jax.arrays.devices import prepare; prepare();"
        "import jax;"
        "print(jax.device_count(), os.environ['NPROC'])"
    )
    names = {"cores": len(os.sched_getaffinity(0)), "max": max}
    without = {k: v for k, v in os.environ.items() if k not in ("NPROC", "XLA_FLAGS")}
    expected = f"{eval(count, names)} {eval(threads, names)}"
    assert python(code, without | given) == expected


@pytest.mark.parametrize(
    ("asked", "error", "said"),
    [
        ("cuda", AssertionError(), "JAX_PLATFORMS=cuda: expected a platform with"),
        ("tpu", RuntimeError("Unable to"), "JAX_PLATFORMS=tpu: Unable to"),
        (None, RuntimeError("Unable to"), "^Unable to"),
    ],
)
def test_what_jax_cannot_start_on_is_said(asked, error, said, monkeypatch):
    monkeypatch.setattr(jax, "default_backend", Mock(side_effect=error))
    monkeypatch.setattr(devices, "prepare", Mock())
    monkeypatch.setattr(jax, "config", SimpleNamespace(jax_platforms=asked))
    with pytest.raises(UserError, match=said):
        devices.start()


@pytest.mark.parametrize(
    ("asked", "installed", "platform", "warns"),
    [
        (None, "jax_plugins", "cpu", True),
        ("", "libtpu", "cpu", True),
        ("cpu", "libtpu", "cpu", False),
        (None, "", "cpu", False),
        (None, "jax_plugins", "gpu", False),
    ],
)
def test_an_accelerator_that_is_not_found_is_said(
    asked, installed, platform, warns, monkeypatch, capsys
):
    """If JAX was installed for one, and nobody has asked for the CPU."""
    monkeypatch.setattr(jax, "default_backend", lambda: platform)
    monkeypatch.setattr(devices, "prepare", Mock())
    monkeypatch.setattr(jax, "config", SimpleNamespace(jax_platforms=asked))
    monkeypatch.setattr(devices, "find_spec", lambda name: name == installed)
    devices.start()
    said = capsys.readouterr().err
    assert said.startswith("warning: no accelerator was found") == warns
    assert bool(said) == warns

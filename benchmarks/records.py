"""What benchmarks found, as it was measured: `results/*.json`, one file for each.

A table in a document is made from such a file alone, under a line that says how and on
what it was measured; `tests/project/test_results.py` says that they agree.
"""

import json
import platform
import textwrap
from importlib.metadata import version
from pathlib import Path
from typing import Any

import jax
from jax._src import xla_bridge

from ppo_jax.arrays import devices
from ppo_jax.host.run_dir import files

PACKAGES = ("jax", "jaxlib", "flax", "optax", "gymnax", "numpy")


def write(path: Path, settings: dict[str, Any], rows: list[dict[str, Any]]) -> None:
    """Keeps what was measured, and on what."""
    record = {"settings": settings, "machine": machine(), "rows": rows}
    text = json.dumps(record, indent=2, allow_nan=False) + "\n"
    path.parent.mkdir(parents=True, exist_ok=True)
    files.write(path, text)


def read(path: Path) -> dict[str, Any]:
    """What `write` kept."""
    return json.loads(path.read_text())


def machine() -> dict[str, Any]:
    """What numbers depend on besides the settings."""
    return {
        "cores": devices.cores(),
        "processor": platform.machine(),
        **accelerator(),
        "python": platform.python_version(),
        **{name: version(name) for name in PACKAGES},
    }


def accelerator() -> dict[str, str]:
    """Returns the kind of the GPU or TPU that this process has computed on, if any.

    A script whose work is done by others does not take one now.
    """
    if not xla_bridge.backends_are_initialized():
        return {}
    device = jax.devices()[0]
    return {} if device.platform == "cpu" else {"device": device.device_kind}


def caption(record: dict[str, Any]) -> str:
    """What stands above the table: all settings, and the machine."""
    parts = (record["settings"], record["machine"])
    said = (", ".join(f"{k} {v}" for k, v in part.items()) for part in parts)
    return textwrap.fill("; ".join(said), 88)

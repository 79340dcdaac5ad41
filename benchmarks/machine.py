"""What measurements run on: processors, and one GPU or TPU."""

import os
import platform
import re
import subprocess
from pathlib import Path


class Elsewhere(subprocess.SubprocessError):
    """A library computes on another device than it is to."""

    stderr = ""


def processor(told: Path = Path("/proc/cpuinfo")) -> str:
    """Returns what the system calls it, and its generation: one name has several."""
    text = told.read_text() if told.exists() else ""
    known = dict(re.findall(r"^(?:cpu )?([\w ]+?)\s*: (.*)$", text, re.M))
    if "model name" not in known:
        return platform.machine()
    numbers = (f"{x} {known[x]}" for x in ("family", "model") if x in known)
    return ", ".join((known["model name"], *numbers))


def accelerator(python: str, folder: Path) -> str:
    """Returns the one GPU or TPU that an interpreter's JAX computes on.

    Args:
        python: The interpreter.
        folder: Where `measure.py` is.

    Raises:
        Elsewhere: If it has none.
    """
    done = subprocess.run(
        [python, "-c", "from measure import device; print(device())"],
        stdout=subprocess.PIPE,
        text=True,
        check=True,
        cwd=folder,
        env=on_one_device(dict(os.environ)),
    )
    found = done.stdout.strip()
    require_device(found)
    return found


def require_device(found: str, wanted: str | None = None) -> None:
    """Raises `Elsewhere` unless it is the device that is wanted, or one GPU or TPU."""
    several = " × " in found
    if found == "cpu" or several or wanted not in (None, found):
        needed = (
            "it has to see one of them"
            if several
            else "its interpreter needs the JAX of the device, such as jax[cuda12]"
        )
        raise Elsewhere(
            f"runs on {found}, not on {wanted or 'one GPU or TPU'}: {needed}"
        )


def on_one_device(variables: dict[str, str]) -> dict[str, str]:
    """Returns variables by which a process sees one GPU: the first that this one sees.

    >>> on_one_device({"CUDA_VISIBLE_DEVICES": "2,3"}), on_one_device({})
    ({'CUDA_VISIBLE_DEVICES': '2'}, {'CUDA_VISIBLE_DEVICES': '0'})
    """
    first, *_ = variables.get("CUDA_VISIBLE_DEVICES", "0").split(",")
    return variables | {"CUDA_VISIBLE_DEVICES": first}

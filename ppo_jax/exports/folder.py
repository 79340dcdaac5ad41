"""Folders of exports: what is written there, and when nothing is."""

import io
import json
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np

from ppo_jax.errors import UserError
from ppo_jax.exports import arrays, program, runner
from ppo_jax.exports.description import describe
from ppo_jax.host.run_dir import files
from ppo_jax.policy import Policy

FORMATS = ("all", "stablehlo", "numpy")
PACKAGES = ("ppo_jax", "jax", "flax", "numpy")
OURS = (runner.ARRAYS, runner.RUNNER, program.PROGRAM, runner.DESCRIPTION)
"""All that an export may have; the last one is the last that is replaced."""
CACHE = "__pycache__"
"""What Python leaves where policy.py was imported."""


def read(folder: Path, names: tuple[str, ...] | None = None) -> dict[str, Any]:
    """The description of an export, once its files are known to be as exported.

    Args:
        folder: Where it is.
        names: Which of its files are needed; None: all.

    Raises:
        UserError: If it is none, of another version, or one of the files is changed.
    """
    try:
        return runner.read(folder, names)
    except runner.ExportError as error:
        raise UserError(str(error)) from None


def require_free(folder: Path) -> None:
    """Makes a folder if need be, and checks that an export may be written there.

    Raises:
        UserError: If it cannot be written, or holds anything but an export as it was
            exported, one that was cut off, or what Python keeps of policy.py.
    """
    files.require_folder(folder)
    others = ", ".join(sorted({x.name for x in folder.iterdir()} - _known(folder)))
    if others:
        raise UserError(
            f"{folder}: expected a new folder, or one with an export alone; it holds "
            f"{others:.80}"
        )


def write(
    folder: Path, policy: Policy, kind: str, trained: dict[str, Any]
) -> list[Path]:
    """Writes an export in the place of what was there.

    What was there is whole until all of the new one is written beside it.

    Args:
        folder: A folder that is free.
        policy: What to export.
        kind: One of `FORMATS`.
        trained: How it came to be, as JSON.

    Returns:
        Its files.

    Raises:
        UserError: If the policy cannot be exported so; nothing is written then.
    """
    contents = {runner.ARRAYS: packed(arrays.arrays(policy))}
    network = None if kind == "stablehlo" else arrays.network(policy)
    if network is not None:
        contents[runner.RUNNER] = Path(runner.__file__).read_bytes()
    if kind != "numpy":
        contents[program.PROGRAM] = program.serialized(policy)
    said = {
        "version": runner.VERSION,
        "trained": trained,
        **describe(policy),
        "network": network,
        "versions": {name: version(name) for name in PACKAGES},
        "files": {name: runner.checksum(data) for name, data in contents.items()},
    }
    text = json.dumps(said, indent=2, allow_nan=False) + "\n"
    contents[runner.DESCRIPTION] = text.encode()
    _replace({folder / name: data for name, data in contents.items()}, folder)
    return sorted(folder / name for name in contents)


def packed(named: dict[str, Any]) -> bytes:
    """Arrays of numbers as a file of NumPy, in which there is no pickle."""
    file = io.BytesIO()
    np.savez(file, **named)
    return file.getvalue()


def _known(folder: Path) -> set[str]:
    """What may be there of exports, also of one that was cut off."""
    known = {_staged(folder / name).name for name in OURS}
    known |= {runner.DESCRIPTION, CACHE}
    described = folder / runner.DESCRIPTION
    if _staged(described).exists():
        return known | {*OURS}
    return known | read(folder)["files"].keys() if described.exists() else known


def _replace(contents: dict[Path, bytes], folder: Path) -> None:
    """Replaces what is in a folder, once all is written beside it; in order."""
    for path, data in contents.items():
        _staged(path).write_bytes(data)
    new = {*contents, *map(_staged, contents), folder / CACHE}
    for path in {*folder.iterdir()} - new:
        path.unlink()
    for path in contents:
        _staged(path).replace(path)


def _staged(path: Path) -> Path:
    """Where a file is until all of the export is written."""
    return path.with_name(path.name + ".part")

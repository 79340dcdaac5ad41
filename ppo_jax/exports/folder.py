"""Folders of exports: their files, and checks that they may be written."""

import io
import json
from importlib import import_module
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
"""Names of all files that an export may have; the last one is replaced last."""
CACHE = "__pycache__"
"""Folder that Python leaves where policy.py was imported."""


def read(folder: Path, names: tuple[str, ...] | None = None) -> dict[str, Any]:
    """Returns the description of an export, if its files are as exported.

    Args:
        folder: The folder of the export.
        names: Names of the files that are needed; None: all.

    Raises:
        UserError: If the folder is no export, of another version, or a file is changed.
    """
    try:
        return runner.read(folder, names)
    except runner.ExportError as error:
        raise UserError(str(error)) from None


def require_free(folder: Path) -> None:
    """Makes a folder if need be, and checks that an export may be written there.

    Raises:
        UserError: If the folder cannot be written, or holds anything but an unchanged
            export, one whose writing was cut off, or Python's cache of policy.py.
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
    """Writes an export, which replaces the one in the folder.

    The old export stays whole until all of the new export is written beside it.

    Args:
        folder: A folder that is free.
        policy: The policy.
        kind: One of `FORMATS`.
        trained: Provenance of the policy, as JSON.

    Returns:
        The paths of its files.

    Raises:
        UserError: If the policy cannot be exported in this format; nothing is written.
    """
    contents = {runner.ARRAYS: packed(arrays.arrays(policy))}
    network = None if kind == "stablehlo" else arrays.network(policy)
    if network is not None:
        contents[runner.RUNNER] = Path(runner.__file__).read_bytes()
    if kind != "numpy":
        contents[program.PROGRAM] = program.serialized(policy)
    description = {
        "version": runner.VERSION,
        "trained": trained,
        **describe(policy),
        "network": network,
        "versions": {name: import_module(name).__version__ for name in PACKAGES},
        "files": {name: runner.checksum(data) for name, data in contents.items()},
    }
    text = json.dumps(description, indent=2, allow_nan=False) + "\n"
    contents[runner.DESCRIPTION] = text.encode()
    _replace({folder / name: data for name, data in contents.items()}, folder)
    return sorted(folder / name for name in contents)


def packed(named: dict[str, Any]) -> bytes:
    """Packs arrays of numbers into a file of NumPy, in which there is no pickle."""
    file = io.BytesIO()
    np.savez(file, **named)
    return file.getvalue()


def _known(folder: Path) -> set[str]:
    """Returns the names of files of exports, also of one that was cut off."""
    known = {_staged(folder / name).name for name in OURS}
    known |= {runner.DESCRIPTION, CACHE}
    described = folder / runner.DESCRIPTION
    if _staged(described).exists():
        return known | {*OURS}
    return known | read(folder)["files"].keys() if described.exists() else known


def _replace(contents: dict[Path, bytes], folder: Path) -> None:
    """Replaces the files of a folder, in order, once all are written beside them."""
    for path, data in contents.items():
        _staged(path).write_bytes(data)
    new = {*contents, *map(_staged, contents), folder / CACHE}
    for path in {*folder.iterdir()} - new:
        path.unlink()
    for path in contents:
        _staged(path).replace(path)


def _staged(path: Path) -> Path:
    """Returns the path of a file until all of the export is written."""
    return path.with_name(path.name + ".part")

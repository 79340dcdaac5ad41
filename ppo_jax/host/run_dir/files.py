"""Files that are there whole or not at all, also when the process is killed."""

import contextlib
import errno
import glob
import itertools
import json
import math
import os
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from ppo_jax.errors import UserError, brief
from ppo_jax.host.run_dir import damage
from ppo_jax.host.run_dir.script import ExperimentError

LEFT = 60.0
"""Seconds after which a part that is not whole was left by a process that ended."""
OF_PLACES = {
    *(errno.EACCES, errno.EPERM, errno.EROFS, errno.ENAMETOOLONG, errno.ELOOP),
    *(errno.ENOENT, errno.ENOTDIR, errno.EISDIR, errno.EEXIST, errno.EINVAL),
}
"""Errors of paths at which nothing can be written, however often it is tried."""
REPLACING = ".replacing.json"
"""Name of a file with those that are being replaced together."""
UNFIT = re.compile(r"[*?\[\\\udc80-\udcff]")
"""Characters of patterns, for which orbax takes the whole path of a checkpoint, and
bytes that are no UTF-8, which it cannot write."""


def write(path: Path, text: str) -> None:
    """Replaces a file's text in one step.

    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp()) / "x.json"
    >>> write(path, "{}")
    >>> path.read_text(), len(list(path.parent.iterdir()))
    ('{}', 1)
    """
    write_bytes(path, text.encode())


def write_bytes(path: Path, data: bytes) -> None:
    """Replaces a file's contents in one step; removes old unfinished parts.

    A link stays a link. A device or a pipe, such as `/dev/stdout`, is written directly.
    Errors of a disk that is full name the path.
    """
    with naming(path):
        if _is_special(path):
            path.write_bytes(data)
        else:
            _replace_whole(path.resolve(), data)


def _replace_whole(path: Path, data: bytes) -> None:
    part = _part(path)
    try:
        with part.open("wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())  # Otherwise a power cut may leave an empty file.
        _remove_older(path, part.stat().st_mtime - LEFT)
        part.replace(path)
    finally:
        part.unlink(missing_ok=True)


def write_json(path: Path, value: Any) -> None:
    """Replaces a file by a value as JSON, to be read by people too.

    A number that is not finite is null, as JSON does not know it.
    """
    write(path, json.dumps(_finite(value), indent=2, allow_nan=False) + "\n")


def replace(folder: Path, texts: Mapping[str, bytes | None]) -> None:
    """Replaces files of a folder, all or none of them; None: one is deleted.

    After a kill, `complete` does what is left to do.

    >>> import tempfile
    >>> folder = Path(tempfile.mkdtemp())
    >>> replace(folder, {"x.py": b"x", "below/y.py": b"y"})
    >>> replace(folder, {"x.py": None, "below/y.py": b"z"})
    >>> (folder / "below/y.py").read_text(), len(list(folder.iterdir()))
    ('z', 1)
    """
    folder.mkdir(parents=True, exist_ok=True)
    plain = {
        name: None if text is None else text.decode("latin-1")
        for name, text in texts.items()
    }
    write(folder / REPLACING, json.dumps(plain))
    complete(folder)


def complete(folder: Path) -> None:
    """Replaces what is left of files that a process which was killed was replacing.

    Raises:
        ExperimentError: If the list of them is damaged.
    """
    journal = folder / REPLACING
    try:
        left = journal.read_bytes()
    except (FileNotFoundError, NotADirectoryError):
        return
    for name, text in _row(str(journal), left).items():
        path = folder / name
        if text is None:
            path.unlink(missing_ok=True)
        else:
            path.parent.mkdir(parents=True, exist_ok=True)
            write_bytes(path, text.encode("latin-1"))
    journal.unlink(missing_ok=True)


def set_aside(path: Path) -> Path:
    """Renames a file or a folder that is in the way; returns its new path.

    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp()) / "5"
    >>> path.mkdir()
    >>> set_aside(path).name, path.exists()
    ('5.aside-1', False)
    """
    names = (path.with_name(f"{path.name}.aside-{i}") for i in itertools.count(1))
    return path.rename(next(name for name in names if not os.path.lexists(name)))


def require_writable(path: Path) -> None:
    """Checks at once that a file can be written later; leaves nothing behind.

    Raises:
        UserError: If it cannot; the message says why.
    """
    try:
        if path.is_dir():
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
        if _is_special(path):
            if not os.access(path, os.W_OK):
                raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))
            return
        part = _part(path.resolve())
        part.touch()
        part.unlink()
    except OSError as error:
        raise UserError(f"{path}: cannot be written: {error.strerror}") from error


def require_folder(path: Path) -> None:
    """Makes a folder if need be, and checks that files can be written there.

    Raises:
        UserError: If they cannot; the message says why.
    """
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UserError(f"{path}: cannot be made: {error.strerror}") from error
    require_writable(path / "any")


@contextlib.contextmanager
def naming(path: Path) -> Iterator[None]:
    """Names a path in an error of the system that names none, as of a full disk."""
    try:
        yield
    except OSError as error:
        if error.filename is None:
            error.filename = str(path)
        raise


@contextlib.contextmanager
def of_run(run_dir: Path) -> Iterator[None]:
    """Names the directory of a run in which no file can be written.

    Raises:
        ExperimentError: If it is no place for a run.
        OSError: If the disk does not take what is written.
    """
    try:
        yield
    except OSError as error:
        if error.errno not in OF_PLACES:
            raise
        message = f"{run_dir}: no run can be kept there: {error}"
        raise ExperimentError(message) from error


def require_plain(run_dir: Path) -> None:
    """Checks that checkpoints which are saved in a directory can be found again.

    Raises:
        ExperimentError: If they could not, by a character of the whole path.

    >>> require_plain(Path("/runs/lr=0.1 (old)"))
    >>> require_plain(Path("/runs/[a]"))
    Traceback (most recent call last):
    ppo_jax.host.run_dir.script.ExperimentError: /runs/[a]: its path has '[', with \
which checkpoints may not be found again; choose another path
    """
    found = UNFIT.search(run_dir.absolute().as_posix())
    if found is not None:
        raise ExperimentError(
            f"{run_dir}: its path has '{found[0]}', with which checkpoints may not be "
            "found again; choose another path"
        )


def rows(path: Path) -> list[dict[str, Any]]:
    r"""Reads the lines of JSON of a file, without one that was cut off at its end.

    Raises:
        ExperimentError: If another line is no JSON; the message says which.

    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp()) / "x.jsonl"
    >>> rows(path)
    []
    >>> _ = path.write_text('{"x": 1}\n{"x"')
    >>> rows(path)
    [{'x': 1}]
    """
    return [*each_row(path)]


def each_row(path: Path) -> Iterator[dict[str, Any]]:
    """Yields what `rows` returns, up to a line that is no JSON, which it raises."""
    lines = path.read_bytes().split(b"\n")[:-1] if path.exists() else []
    for number, line in enumerate(lines, start=1):
        yield _row(f"{path}: line {number}", line)


def arrays(path: Path) -> dict[str, np.ndarray]:
    """Reads the arrays of an `.npz` file.

    Raises:
        ExperimentError: If it is missing or damaged.
        OSError: If it cannot be read now, though it may be whole.
    """
    try:
        with path.open("rb") as file, np.load(file) as stored:
            return dict(stored)
    except Exception as error:  # Damage to a ZIP file has many.
        if damage.passes(error):
            raise
        raise ExperimentError(f"{path}: cannot be read: {brief(error)}") from error


def _row(place: str, line: bytes) -> dict[str, Any]:
    try:
        row = json.loads(line.decode())
    except ValueError as error:
        raise ExperimentError(f"{place} is no JSON: {error}") from error
    if not isinstance(row, dict):
        raise ExperimentError(f"{place}: expected names and values, got {row!r:.80}")
    return row


def _finite(value: Any) -> Any:
    """Returns a value for JSON, with None for numbers that are not finite.

    >>> _finite({"iqm": -math.inf, "interval": (0.5, math.nan)})
    {'iqm': None, 'interval': [0.5, None]}
    """
    if isinstance(value, dict):
        return {name: _finite(each) for name, each in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(each) for each in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def _is_special(path: Path) -> bool:
    """Returns whether a path is neither a file nor a folder, but a device or a pipe."""
    return path.exists() and not (path.is_file() or path.is_dir())


def _part(path: Path) -> Path:
    """Returns the path at which this process writes a file until it is whole."""
    return path.with_name(f"{path.name}.{os.getpid()}.part")


def _remove_older(path: Path, since: float) -> None:
    """Removes parts of a file that nobody has written since, as after a kill."""
    for part in path.parent.glob(f"{glob.escape(path.name)}.*part"):
        with contextlib.suppress(OSError):
            if part.stat().st_mtime < since:
                part.unlink()

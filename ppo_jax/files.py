"""Files that are there whole or not at all, also when the process is killed."""

import json
from pathlib import Path
from typing import Any


def write(path: Path, text: str) -> None:
    """Replaces a file's text in one step.

    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp()) / "x.json"
    >>> write(path, "{}")
    >>> path.read_text(), len(list(path.parent.iterdir()))
    ('{}', 1)
    """
    part = path.with_name(path.name + ".part")
    part.write_text(text)
    part.replace(path)


def rows(path: Path) -> list[dict[str, Any]]:
    r"""The lines of JSON of a file; one that was cut off is not there.

    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp()) / "x.jsonl"
    >>> rows(path)
    []
    >>> _ = path.write_text('{"x": 1}\n{"x"')
    >>> rows(path)
    [{'x': 1}]
    """
    lines = path.read_text().splitlines(True) if path.exists() else []
    return [json.loads(line) for line in lines if line.endswith("\n")]

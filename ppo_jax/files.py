"""Files that are there whole or not at all, also when the process is killed."""

from pathlib import Path


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

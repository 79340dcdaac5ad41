"""Files of prices as they are: cells of text under a header."""

import csv
import importlib.util
import io
from pathlib import Path
from typing import Any, NamedTuple

import pandas as pd

from ppo_jax.errors import UserError

KINDS = (".csv", ".parquet")
Frame = Any
"""A `pandas.DataFrame`; `Any`, as its methods may return anything to type checkers."""
Column = Any
"""A `pandas.Series`; `Any` likewise."""


class PriceError(UserError, ValueError):
    """Prices that cannot be used as they are; the message says where and why."""


class Cells(NamedTuple):
    """The contents of a file."""

    name: str
    """Name of the file, as it was given."""
    header: list[str]
    rows: Frame
    """Cells as text, in numbered columns."""
    place: list[int]
    """The line of each row in the file, or the row's number if there are no lines."""
    unit: str
    """Unit of `place`: lines or rows."""
    ended: bool = True
    """Whether the last line has its end."""


def cells(path: str) -> Cells:
    """Reads a file.

    Raises:
        PriceError: If the file cannot be read.
    """
    file = Path(path)
    if file.suffix.lower() not in KINDS:
        raise PriceError(f"{path}: expected a file {' or '.join(KINDS)}")
    if not file.is_file():
        message = "is a folder" if file.is_dir() else f"no such file in {Path.cwd()}"
        raise PriceError(f"{path}: {message}; expected a file of prices")
    found = _parquet(path) if file.suffix.lower() == ".parquet" else _csv(path)
    if not found.place:
        raise PriceError(f"{path}: is empty; expected a header, and a row per bar")
    return found


def cells_of(frame: Frame, name: str, unit: str = "row") -> Cells:
    """Converts a table of pandas to the cells that a file would have."""
    numbered = pd.api.types.is_integer_dtype(frame.index)
    frame = frame.reset_index(drop=numbered)
    header = [str(name) for name in frame.columns]
    rows = frame.set_axis(range(len(header)), axis=1).astype(str).fillna("")
    return Cells(name, header, rows, [*range(1, len(rows) + 1)], unit)


def _parquet(path: str) -> Cells:
    if importlib.util.find_spec("pyarrow") is None:
        message = "needs pyarrow, which is not installed: pip install 'ppo_jax[market]'"
        raise PriceError(f"{path}: {message}; or write a .csv")
    try:
        return cells_of(pd.read_parquet(path), path)
    except Exception as error:  # Pyarrow has many kinds of errors.
        raise PriceError(f"{path}: cannot be read: {error}") from error


def _csv(path: str) -> Cells:
    try:
        with open(path, newline="", encoding="utf-8-sig") as file:
            text = file.read()
        reader = csv.reader(io.StringIO(text, newline=""), strict=True)
        lines = [(reader.line_num, row) for row in reader]
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise PriceError(f"{path}: cannot be read: {error}") from error
    header = [name.strip() for name in lines[0][1]] if lines else []
    for number, row in lines[1:]:
        if len(row) != len(header):
            raise PriceError(
                f"{path}, line {number}: got {_counted(row)}, expected {len(header)} "
                f"as in the header {','.join(header)!r:.80}"
            )
    rows = pd.DataFrame([row for _, row in lines[1:]], columns=range(len(header)))
    places, ended = [number for number, _ in lines[1:]], text.endswith(("\n", "\r"))
    return Cells(path, header, rows, places, "line", ended)


def _counted(row: list[str]) -> str:
    return f"{len(row)} cells" if any(row) else "an empty line"


def column(found: Cells, index: int) -> Column:
    """Returns the cells of a column, without spaces around them."""
    return found.rows[index].str.strip()

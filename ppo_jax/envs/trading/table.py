"""Prices as rows: a time, an asset, and its prices."""

import re
from typing import NamedTuple

import numpy as np
import pandas as pd

from ppo_jax.component.suggestion import unknown
from ppo_jax.envs.trading.bars import Bars
from ppo_jax.envs.trading.files import Cells, Column, Frame, PriceError, column

TIMES = ("date", "time", "datetime", "timestamp")
SYMBOLS = ("symbol", "ticker", "asset")
PRICES = ("open", "high", "low", "close")
ADJUSTED = ("adj close", "adjclose", "adjusted close")
OTHERS = ("volume", "tradable")
MISSING = ("", "-", "na", "n/a", "nan", "nat", "none", "null")
"""Texts that stand for a missing number, in small letters."""
YEARS = 1678, 2261
"""The years that nanoseconds reach from 1970, but for the first and last."""
LOCAL = re.compile(r"\d{4}-\d\d-\d\d([T ]\d\d:\d\d(:\d\d(\.\d+)?)?)?")
"""A time without its zone."""
ISO = re.compile(LOCAL.pattern + r"(Z|[+-]\d\d:?\d\d)?")


class Table(NamedTuple):
    """Prices row by row, before and after they are checked."""

    name: str
    """Name of the file."""
    rows: Frame
    """Columns `place`, `time` in UTC, `zone` as it was written, `symbol`, and numbers:
    prices by name, `adjusted`, `volume`, `tradable`."""
    unit: str
    """Unit of `place`: lines or rows."""
    headers: dict[str, str]
    """Names of columns of numbers in the file; {}: the symbols are their names."""
    others: tuple[str, ...] = ()
    """Columns that have nothing to do with prices."""

    @property
    def prices(self) -> list[str]:
        """Names of the prices that the table has."""
        return [name for name in PRICES if name in self.rows]

    def where(self, row: Column, field: str | None = None) -> str:
        """Describes the place of a row, or of a field in it, in the file."""
        header = self.headers.get(str(field), row["symbol"])
        place = f"{self.name}, {self.unit} {row['place']}"
        return f"{place}, column {header!r}" if field else place


def table(cells: Cells) -> Table:
    """Returns the rows of a file, whatever its layout.

    Layouts are: one asset, with a column `close`; many below each other, with a column
    `symbol` as well; many side by side, a column of closes each. An asset beside others
    may be called as a price is, such as LOW; not half of them.

    Raises:
        PriceError: If a column, a time or a number cannot be understood.
    """
    names = [re.sub(r"[\s_]+", " ", name.strip().casefold()) for name in cells.header]
    _require_distinct(cells, names)
    time = _time(cells, names)
    known = {*PRICES, *ADJUSTED, *OTHERS}
    fields = [i for i, name in enumerate(names) if name in known]
    symbols = _at_most_one(cells, names, SYMBOLS, "assets")
    _at_most_one(cells, names, ADJUSTED, "adjusted closes")
    rest = {*range(len(names))} - {time, *fields, *symbols}
    begun = _times(cells, time)
    beside = len(fields) < len(rest) and not {*names} & {"close", *ADJUSTED, *OTHERS}
    if not symbols and beside:
        return _side_by_side(cells, begun, sorted(rest | {*fields}))
    if "close" not in names:
        there = [cells.header[i] for i in sorted({*range(len(names))} - {time})]
        raise PriceError(f"{cells.name}: {unknown('column', 'close', there)}")
    rows = begun.assign(symbol=_symbols(cells, symbols))
    called = {("adjusted" if names[i] in ADJUSTED else names[i]): i for i in fields}
    for name, index in called.items():
        rows[name] = _numbers(cells, index)
    headers = {name: cells.header[index] for name, index in called.items()}
    others = tuple(cells.header[i] for i in sorted(rest))
    return Table(cells.name, _with_trades(rows), cells.unit, headers, others)


def bars(table: Table) -> Bars:
    """Returns the arrays of a table that was checked."""
    rows = table.rows
    symbols = tuple(dict.fromkeys(rows["symbol"]))
    wide = rows.pivot(index="time", columns="symbol")
    array = {
        name: wide[name][list(symbols)].to_numpy()
        for name in ("open", "close", "tradable")
        if name in rows
    }
    times = wide.index.to_numpy().astype("datetime64[ns]")
    tradable = array["tradable"].astype(bool)
    return Bars(times, symbols, array["close"], array.get("open"), tradable)


def _side_by_side(cells: Cells, begun: Frame, columns: list[int]) -> Table:
    parts = [
        begun.assign(symbol=cells.header[i], close=_numbers(cells, i)) for i in columns
    ]
    if not parts:
        raise PriceError(f"{cells.name}: no column of prices; expected one per asset")
    rows = _with_trades(pd.concat(parts, ignore_index=True))
    return Table(cells.name, rows, cells.unit, {})


def _with_trades(rows: Frame) -> Frame:
    """Adds the column `tradable`: which bars saw a trade.

    From an asset's first volume on, these are the bars with a volume. The first volume
    is the first in time, whatever the order of the rows.
    """
    traded = pd.Series(True, rows.index)
    if "volume" in rows:
        some = rows["volume"].fillna(0) > 0
        in_time = some[rows["time"].sort_values(kind="stable").index]
        begun = in_time.groupby(rows["symbol"]).cummax()
        traded &= some | ~begun.reindex(rows.index)
    if "tradable" in rows:
        traded &= rows["tradable"].fillna(0) > 0
    return rows.assign(tradable=traded)


def _require_distinct(cells: Cells, names: list[str]) -> None:
    for index, name in enumerate(names):
        if not name:
            message = f"{cells.name}: column {index + 1} has no name"
            raise PriceError(f"{message}; expected a header with a name per column")
        if name in names[:index]:
            again = cells.header[index]
            raise PriceError(f"{cells.name}: two columns {again!r}; expected one")


def _time(cells: Cells, names: list[str]) -> int:
    """Returns the index of the column of times."""
    found = _at_most_one(cells, names, TIMES, "times")
    if not found:
        message = unknown("column", TIMES[0], cells.header)
        raise PriceError(f"{cells.name}: {message}; expected one of {', '.join(TIMES)}")
    return found[0]


def _at_most_one(
    cells: Cells, names: list[str], wanted: tuple[str, ...], what: str
) -> list[int]:
    """Returns the index of the column whose name is in `wanted`, if there is one."""
    found = [i for i, name in enumerate(names) if name in wanted]
    if len(found) > 1:
        both = " and ".join(repr(cells.header[i]) for i in found)
        raise PriceError(f"{cells.name}: columns {both}; expected one of {what}")
    return found


def _symbols(cells: Cells, columns: list[int]) -> Column | str:
    if not columns:
        return re.split(r"[\\/]", cells.name)[-1].rpartition(".")[0] or cells.name
    found = column(cells, columns[0])
    for row in np.flatnonzero(found == "")[:1]:
        header = cells.header[columns[0]]
        raise PriceError(f"{_at(cells, row, header)}: no asset is named")
    return found


def _numbers(cells: Cells, index: int) -> Column:
    """Returns the numbers of a column; NaN where a number is missing."""
    text = column(cells, index)
    found: Column = pd.to_numeric(text, errors="coerce")
    numbers = found.astype(float)
    strange = numbers.isna() & ~text.str.casefold().isin(MISSING)
    for row in np.flatnonzero(strange)[:1]:
        message = f"got {text[row]!r}, expected a number"
        raise PriceError(f"{_at(cells, row, cells.header[index])}: {message}")
    return numbers


def _times(cells: Cells, index: int) -> Frame:
    text = column(cells, index)
    form = text.str.fullmatch(ISO)
    times: Column = pd.to_datetime(
        text.where(form), errors="coerce", format="ISO8601", utc=True
    )
    for row in np.flatnonzero(~times.dt.year.between(*YEARS))[:1]:
        raise PriceError(
            f"{_at(cells, row, cells.header[index])}: got {text[row]!r}, expected a "
            "time as 2020-01-31 or 2020-01-31T16:00:00+00:00, of the years "
            f"{YEARS[0]} to {YEARS[1]}"
        )
    zones = text.str.replace(LOCAL, "", regex=True)
    naive = times.dt.tz_localize(None).astype("datetime64[ns]")
    return pd.DataFrame({"place": cells.place, "time": naive, "zone": zones})


def _at(cells: Cells, row: int, header: str) -> str:
    return f"{cells.name}, {cells.unit} {cells.place[row]}, column {header!r}"

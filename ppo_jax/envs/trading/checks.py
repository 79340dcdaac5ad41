"""Checks of prices, and the repairs that mend what a check would refuse."""

from collections.abc import Callable, Iterable
from typing import NamedTuple

import numpy as np
import pandas as pd

from ppo_jax.component.suggestion import unknown
from ppo_jax.envs.trading import repairs
from ppo_jax.envs.trading.files import Column, Frame, PriceError
from ppo_jax.envs.trading.splits import factors
from ppo_jax.envs.trading.table import ADJUSTED, OTHERS, PRICES, SYMBOLS, TIMES, Table

Repair = Callable[[Table], Table]
LEAST = 3
"""Least number of bars."""
LONG, SPACINGS = pd.Timedelta(days=10), 3
"""A gap is longer than both `LONG` and `SPACINGS` times the usual spacing."""
ROUNDING = 1e-6
"""Largest excess of a price beyond its bar's range, relative to the range's end."""


class Stage(NamedTuple):
    """A check, and the repairs that can be asked for before it."""

    check: Callable[[Table], None]
    mends: tuple[Repair, ...] = ()
    accepts: tuple[Repair, ...] = ()
    """Repairs that leave out the check."""


def examined(table: Table, asked: Iterable[Repair]) -> Table:
    """Repairs a table as asked, and returns it once it has passed all checks.

    Raises:
        PriceError: At the first defect; the message names the repairs that mend it.
    """
    asked = set(asked)
    for check, mends, accepts in STAGES:
        for repair in mends:
            if repair in asked:
                table = repair(table)
        if asked.intersection(accepts):
            continue
        try:
            check(table)
        except PriceError as error:
            offered = [x.__name__ for x in (*mends, *accepts) if x not in asked]
            hint = f"; there are repairs: {', '.join(offered)}" if offered else ""
            raise PriceError(f"{error}{hint}") from None
    return table


def columns(table: Table) -> None:
    """Checks that each column is known."""
    for name in table.others[:1]:
        known = (*TIMES, *SYMBOLS, *PRICES, *ADJUSTED[:1], *OTHERS)
        raise PriceError(f"{table.name}: {unknown('column of prices', name, known)}")


def zones(table: Table) -> None:
    """Checks that all times are of one zone."""
    rows = table.rows
    first = rows.iloc[0]
    for row in _first(rows, rows["zone"] != first["zone"]):
        raise PriceError(
            f"{table.where(row)}: got a time {_zone(row)}, and one {_zone(first)} in "
            f"{table.unit} {first['place']}, expected one zone"
        )


def order(table: Table) -> None:
    """Checks that the times of an asset do not go back."""
    before = table.rows.groupby("symbol", sort=False)["time"].shift(1)
    for row in _first(table.rows, table.rows["time"] < before):
        message = (
            f"got {row['time']} after {before[row.name]}, expected the oldest first"
        )
        raise PriceError(f"{table.where(row)}: {message}")


def duplicates(table: Table) -> None:
    """Checks that an asset has one row per time."""
    rows = table.rows
    for row in _first(rows, rows.duplicated(["time", "symbol"])):
        same = (rows["time"] == row["time"]) & (rows["symbol"] == row["symbol"])
        earlier = rows[same].iloc[0]["place"]
        raise PriceError(
            f"{table.where(row)}: got {row['time']} of {row['symbol']} again, as in "
            f"{table.unit} {earlier}, expected one row per asset and time"
        )


def finite(table: Table) -> None:
    """Checks that no price is infinite."""
    for name in table.prices:
        for row in _first(table.rows, np.isinf(table.rows[name])):
            message = f"got {row[name]}, expected a finite price"
            raise PriceError(f"{table.where(row, name)}: {message}")


def positive(table: Table) -> None:
    """Checks that prices are above 0."""
    for name in table.prices:
        for row in _first(table.rows, table.rows[name] <= 0):
            message = f"got {row[name]:g}, expected a price > 0"
            raise PriceError(f"{table.where(row, name)}: {message}")


def present(table: Table) -> None:
    """Checks that no price is missing."""
    for name in table.prices:
        for row in _first(table.rows, table.rows[name].isna()):
            raise PriceError(f"{table.where(row, name)}: a price is missing")


def adjusted(table: Table) -> None:
    """Checks that closes are the adjusted ones, up to a scale."""
    if "adjusted" not in table.rows:
        return
    scale = table.rows["adjusted"] / table.rows["close"]
    usual = scale.groupby(table.rows["symbol"]).transform("last")
    for row in _first(table.rows, ~((scale / usual - 1).abs() <= 1e-3)):
        raise PriceError(
            f"{table.where(row, 'adjusted')}: got {row['adjusted']:g} where the close "
            f"is {row['close']:g}, expected prices that are adjusted for splits and "
            "dividends, or none beside them"
        )


def ranges(table: Table) -> None:
    """Checks that no price is above the high or below the low of its bar."""
    rows = table.rows
    for end, sign in (("high", 1), ("low", -1)):
        for name in table.prices if end in rows else ():
            beyond = sign * (rows[name] - rows[end]) > ROUNDING * rows[end]
            for row in _first(rows, beyond):
                least = "at most" if sign > 0 else "at least"
                raise PriceError(
                    f"{table.where(row, name)}: got {row[name]:g}, expected {least} "
                    f"the {end}, {row[end]:g}"
                )


def calendars(table: Table) -> None:
    """Checks that all assets have the same times."""
    rows = table.rows
    symbols = list(dict.fromkeys(rows["symbol"]))
    count = rows.groupby("time")["symbol"].transform("size")
    for row in _first(rows.sort_values("time"), count < len(symbols)):
        there = set(rows["symbol"][rows["time"] == row["time"]])
        absent = next(symbol for symbol in symbols if symbol not in there)
        raise PriceError(
            f"{table.where(row)}: {row['symbol']} has a bar at {row['time']}, but "
            f"{absent} has none; expected the same times of all assets"
        )


def gaps(table: Table) -> None:
    """Checks that no long time is without bars."""
    spacing = table.rows.groupby("symbol", sort=False)["time"].diff()
    limit = max(SPACINGS * spacing.median(), LONG)
    for row in _first(table.rows, spacing > limit):
        before = row["time"] - spacing[row.name]
        raise PriceError(
            f"{table.where(row)}: got a gap from {before} to {row['time']}, expected "
            f"bars at most {limit.days} days apart"
        )


def jumps(table: Table) -> None:
    """Checks that no price jumps as at a split of shares."""
    found = factors(table.rows)
    for row in _first(table.rows, found != 1):
        name = "open" if "open" in table.rows else "close"
        raise PriceError(
            f"{table.where(row, name)}: {row['symbol']} jumped to about "
            f"{found[row.name]:.3g} of the close before, as at a split of shares, "
            "expected adjusted prices"
        )


def enough(table: Table) -> None:
    """Checks that there are at least `LEAST` bars."""
    count = table.rows["time"].nunique()
    if count < LEAST:
        raise PriceError(f"{table.name}: got {count} bars, expected at least {LEAST}")


STAGES = (
    Stage(columns, (repairs.drop_other_columns,)),
    Stage(zones, (repairs.to_utc,)),
    Stage(order, (repairs.sort_rows,)),
    Stage(duplicates, (repairs.keep_last,)),
    Stage(finite),
    Stage(positive, (repairs.blank_non_positive,)),
    Stage(present, (repairs.forward_fill, repairs.drop_incomplete)),
    Stage(calendars, (repairs.forward_fill, repairs.drop_incomplete)),
    Stage(ranges, (repairs.widen_range,)),
    Stage(adjusted, (repairs.adjust,), (repairs.accept_unadjusted,)),
    Stage(gaps, (), (repairs.accept_gaps,)),
    Stage(jumps, (repairs.undo_splits,), (repairs.accept_jumps,)),
    Stage(enough),
)
REPAIRS = tuple(dict.fromkeys(r for s in STAGES for r in (*s.mends, *s.accepts)))


def _first(rows: Frame, bad: Column) -> Iterable[Column]:
    """Returns the first row where `bad` is true, if there is one."""
    found = rows[bad.reindex(rows.index)]
    return [row for _, row in found.iloc[:1].iterrows()]


def _zone(row: Column) -> str:
    return f"in zone {row['zone']}" if row["zone"] else "without a zone"

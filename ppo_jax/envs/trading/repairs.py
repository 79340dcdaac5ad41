"""Repairs of prices, each of which has to be asked for by name.

No repair uses later prices, but for `undo_splits` and `adjust`. These two scale all
prices before an event alike, so that no return changes but the one across the event.
"""

import numpy as np
import pandas as pd

from ppo_jax.envs.trading.files import Frame, PriceError
from ppo_jax.envs.trading.splits import factors
from ppo_jax.envs.trading.table import ADJUSTED, Table


def drop_other_columns(table: Table) -> Table:
    """Ignores columns that have nothing to do with prices."""
    return table._replace(others=())


def to_utc(table: Table) -> Table:
    """Accepts times of several zones, read in UTC; none may lack a zone."""
    zone = table.rows["zone"]
    return table._replace(rows=table.rows.assign(zone=zone.where(zone == "", "Z")))


def sort_rows(table: Table) -> Table:
    """Puts rows in the order of time."""
    return table._replace(rows=table.rows.sort_values("time", kind="stable"))


def keep_last(table: Table) -> Table:
    """Keeps the last of several rows of an asset at a time."""
    return table._replace(
        rows=table.rows.drop_duplicates(["time", "symbol"], keep="last")
    )


def blank_non_positive(table: Table) -> Table:
    """Treats prices that are not above 0 as missing."""
    prices = table.rows[table.prices]
    return table._replace(rows=table.rows.assign(**prices.where(prices > 0)))


def drop_incomplete(table: Table) -> Table:
    """Drops bars at which any asset, or a price of any asset, is missing."""
    rows = table.rows
    whole = rows[table.prices].notna().all(axis=1)
    count = whole.groupby(rows["time"]).transform("sum")
    return table._replace(rows=rows[count == rows["symbol"].nunique()])


def forward_fill(table: Table) -> Table:
    """Holds the last close where prices are missing; such bars are not traded.

    It is that of the bar itself, where another of its prices is missing.
    """
    rows, prices = table.rows, table.prices
    times = np.sort(rows["time"].unique())
    assets = rows.groupby("symbol", sort=False)
    filled = [_filled(part, times, prices) for _, part in assets]
    return table._replace(rows=pd.concat(filled, ignore_index=True))


def adjust(table: Table) -> Table:
    """Scales prices by adjusted close / close, for splits and dividends.

    Raises:
        PriceError: If there are no adjusted closes.
    """
    if "adjusted" not in table.rows:
        message = f"no column {ADJUSTED[0]!r}, which the repair adjust is to scale by"
        raise PriceError(f"{table.name}: {message}")
    scale = table.rows["adjusted"] / table.rows["close"]
    scaled = {name: table.rows[name] * scale for name in table.prices}
    return table._replace(rows=table.rows.assign(**scaled))


def widen_range(table: Table) -> Table:
    """Sets the high of a bar to its highest price, and the low to its lowest."""
    prices = table.rows[table.prices]
    ends = {"high": prices.max(axis=1), "low": prices.min(axis=1)}
    ends = {name: values for name, values in ends.items() if name in prices}
    return table._replace(rows=table.rows.assign(**ends))


def undo_splits(table: Table) -> Table:
    """Scales prices before a jump that looks like a split, by its exact ratio."""
    backwards = factors(table.rows)[::-1].groupby(table.rows["symbol"][::-1])
    later = backwards.cumprod().groupby(table.rows["symbol"][::-1]).shift(1)
    before = later.fillna(1.0)
    scaled = {name: table.rows[name] * before for name in table.prices}
    return table._replace(rows=table.rows.assign(**scaled))


def accept_gaps(table: Table) -> Table:
    """Accepts long times without a bar."""
    return table


def accept_jumps(table: Table) -> Table:
    """Accepts jumps that look like splits as real gains or losses."""
    return table


def accept_unadjusted(table: Table) -> Table:
    """Accepts closes that differ from the adjusted closes beside them."""
    return table


def _filled(rows: Frame, times: np.ndarray, prices: list[str]) -> Frame:
    """Returns the rows of an asset at all times from its first one on, filled."""
    whole = rows.set_index("time").reindex(times[times >= rows["time"].iloc[0]])
    missing = whole[prices].isna().any(axis=1)
    known = whole["close"].notna()
    held = whole.where(known).ffill()
    filled = {name: whole[name].where(~missing, held["close"]) for name in prices}
    if "adjusted" in whole:
        filled["adjusted"] = whole["adjusted"].where(known, held["adjusted"])
    tradable = whole["tradable"].astype("boolean").fillna(False).astype(bool) & ~missing
    whole = whole.assign(tradable=tradable, **filled)
    constant = ["place", "zone", "symbol"]
    whole = whole.assign(**whole[constant].ffill()).astype({"place": int})
    return whole.rename_axis("time").reset_index()

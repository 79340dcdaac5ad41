"""Prices from files, and prices that come with packages."""

import dataclasses
import importlib
from types import ModuleType
from typing import ClassVar

import pandas as pd

from ppo_jax.component.suggestion import unknown
from ppo_jax.envs.trading.bars import Bars
from ppo_jax.envs.trading.checks import REPAIRS, Repair, examined
from ppo_jax.envs.trading.files import Cells, Frame, PriceError, cells, cells_of
from ppo_jax.envs.trading.prices import Prices
from ppo_jax.envs.trading.repairs import (
    accept_jumps,
    adjust,
    drop_incomplete,
    widen_range,
)
from ppo_jax.envs.trading.table import bars, table
from ppo_jax.errors import missing


@dataclasses.dataclass(frozen=True, eq=False, repr=False)
class PriceFile(Prices):
    """Prices of your own, from a `.csv`, or a `.parquet` with the extra `market`.

    A row has a time (`date`, `time`, `datetime` or `timestamp`, as 2020-01-31 or
    2020-01-31T16:00:00+00:00) and prices, oldest first: `close`, and `open`, `high`,
    `low`, `volume`, `adj close` if they are known. For several assets there is a column
    `symbol`, or instead of all these a column of closes for each asset, with its name.
    A file with defects is refused, unless they can be repaired and the repairs are
    asked for.

    Attributes:
        path: The file, relative to the working directory of the command, or absolute.
        repairs: Repairs from `trading.repairs`; their order does not matter.

    Raises:
        PriceError: At construction, for a file that cannot be used; the message names
            row and column, what was found and expected, and the repair.
    """

    path: str
    repairs: tuple[Repair, ...] = ()

    def __post_init__(self) -> None:
        one = callable(self.repairs)
        repairs = (self.repairs,) if one else tuple(self.repairs)
        object.__setattr__(self, "path", str(self.path))
        object.__setattr__(self, "repairs", repairs)
        super().__post_init__()

    @property
    def note(self) -> str:
        return "companies that were delisted are missing if the file leaves them out."

    def load(self) -> Bars:
        for repair in self.repairs:
            names = [known.__name__ for known in REPAIRS]
            message = unknown("repair", getattr(repair, "__name__", str(repair)), names)
            if repair not in REPAIRS:
                raise ValueError(f"PriceFile.repairs: {message}, in trading.repairs")
        return bars(examined(table(self.read()), self.repairs))

    def read(self) -> Cells:
        """Reads the cells of the file."""
        return cells(self.path)


@dataclasses.dataclass(frozen=True, eq=False, repr=False)
class Packaged(Prices):
    """Prices that come with a package of the extra `market`; nothing is downloaded.

    Attributes:
        symbols: Assets of the package to use; (): all of them.

    Raises:
        PriceError: At construction, if the package is not installed, or does not know a
            symbol.
    """

    symbols: tuple[str, ...] = ()

    package: ClassVar[str]
    repairs: ClassVar[tuple[Repair, ...]] = ()

    def frame(self, package: ModuleType) -> Frame:
        """Returns the prices of the package, with the columns of a file."""
        raise missing(self, "frame")

    def load(self) -> Bars:
        name = type(self).__name__
        try:
            package = importlib.import_module(self.package)
        except ImportError as error:
            needed = self.package.partition(".")[0]
            message = f"needs {needed}, which is not installed: pip install"
            raise PriceError(f"{name}: {message} 'ppo_jax[market]'") from error
        frame = self.frame(package)
        long = "symbol" in frame
        known = list(frame["symbol"].unique() if long else frame.columns[1:])
        for symbol in self.symbols:
            if symbol not in known:
                raise PriceError(f"{name}: {unknown('asset', symbol, known)}")
        chosen = list(self.symbols) or known
        kept = frame[frame["symbol"].isin(chosen)] if long else frame[["Date", *chosen]]
        found = table(cells_of(kept, name))
        return bars(examined(found, self.repairs))


@dataclasses.dataclass(frozen=True, eq=False, repr=False)
class Stocks(Packaged):
    """Daily opens and closes of AAPL, IBM and MSFT, 2000-03 to 2013-03.

    They come with `bokeh_sampledata` (Quandl WIKI, public domain), and are adjusted for
    splits and dividends. GOOG is available as well, from 2004-08 on, and FB, from
    2012-05 on; there is a bar at each time at which all assets have a price.
    """

    symbols: tuple[str, ...] = ("AAPL", "IBM", "MSFT")

    package: ClassVar[str] = "bokeh_sampledata.stocks"
    repairs: ClassVar[tuple[Repair, ...]] = (adjust, drop_incomplete, widen_range)

    @property
    def note(self) -> str:
        return (
            "who looks back knows that these companies did well. Compare agents with "
            "baselines on the same prices."
        )

    def frame(self, package: ModuleType) -> Frame:
        names = ("AAPL", "FB", "GOOG", "IBM", "MSFT")
        parts = (pd.DataFrame(getattr(package, name)) for name in names)
        named = [x.assign(symbol=name) for x, name in zip(parts, names, strict=True)]
        return pd.concat(named, ignore_index=True)


@dataclasses.dataclass(frozen=True, eq=False, repr=False)
class Sp500Stocks(Packaged):
    """Daily adjusted closes of 20 companies, 1990-01 to 2022-12, of `skfolio`.

    One jump looks like a split and is left as it is: RRC in April 1990.
    """

    package: ClassVar[str] = "skfolio.datasets"
    repairs: ClassVar[tuple[Repair, ...]] = (accept_jumps,)

    @property
    def note(self) -> str:
        return (
            "survivors. All were large companies of the S&P 500 in 2022, and "
            "whoever holds them earns what nobody could know in 1990. Compare agents "
            "with holding all of them alike, not with an index."
        )

    def frame(self, package: ModuleType) -> Frame:
        return package.load_sp500_dataset().reset_index()


@dataclasses.dataclass(frozen=True, eq=False, repr=False)
class Sp500Index(Packaged):
    """Daily closes of the index S&P 500 without dividends, 1990-01 to 2022-12."""

    package: ClassVar[str] = "skfolio.datasets"

    def frame(self, package: ModuleType) -> Frame:
        return package.load_sp500_index().reset_index()

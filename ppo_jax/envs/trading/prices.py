"""Sources of prices, and the digests that identify them."""

import dataclasses
import functools
from numbers import Integral
from typing import Any

import numpy as np

from ppo_jax.envs.trading.bars import DAYS, Bars, digest, in_arrays, require_whole
from ppo_jax.envs.trading.files import PriceError
from ppo_jax.errors import missing

FIRST_DAY = np.datetime64("2000-01-03")
MOST_DAYS = int(np.busday_count(FIRST_DAY, "2262-04-11"))
"""Weekdays until nanoseconds since 1970 need more than 64 bits."""


@dataclasses.dataclass(frozen=True, eq=False, repr=False)
class Prices:
    """Prices of assets over time; a subclass gets them from a source, in `load`.

    Prices are read at construction. Programs are compiled for them, and a run is stored
    with their source and the SHA-256 of their content. Prices of the same content are
    equal, whatever their source.
    """

    def __post_init__(self) -> None:
        self.sha256  # noqa: B018 - Refuses unusable prices at once.

    def load(self) -> Bars:
        """Reads the prices, and checks them."""
        raise missing(self, "load")

    @property
    def note(self) -> str:
        """A warning about judging earnings at these prices, such as about omissions."""
        return ""

    @functools.cached_property
    def bars(self) -> Bars:
        """The prices, as arrays of the host.

        Raises:
            PriceError: If `load` returns what is no market; the message says where.
        """
        bars = in_arrays(self.load())
        require_whole(bars, type(self).__name__)
        return bars

    @functools.cached_property
    def sha256(self) -> str:
        """Digest of the content."""
        return digest(self.bars)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Prices) and self.sha256 == other.sha256

    def __hash__(self) -> int:
        return hash(self.sha256)

    def __repr__(self) -> str:
        given = [
            f"{field.name}={_shown(getattr(self, field.name))}"
            for field in dataclasses.fields(self)
        ]
        return f"{type(self).__name__}({', '.join(given)}, sha256={self.sha256!r})"


def _shown(value: Any) -> str:
    """Formats a value as `repr` does, but the same in every process."""
    if isinstance(value, tuple):
        items = ", ".join(_shown(item) for item in value)
        return f"({items},)" if len(value) == 1 else f"({items})"
    return getattr(value, "__name__", None) or repr(value)


@dataclasses.dataclass(frozen=True, eq=False, repr=False)
class RandomWalk(Prices):
    """Driftless geometric random walks: nothing can be earned, but by chance.

    The expected price tomorrow is the price today, so that trading loses its costs on
    average. Bars are weekdays from 2000 on, to 2262 at most, where nanoseconds end.

    Attributes:
        num_bars: Number of bars.
        num_assets: Number of assets, of independent prices.
        volatility: Standard deviation of a year's log returns.
        overnight: The share of the variance between a close and the next open; None:
            closes only.
        seed: Seed of the random numbers.

    Raises:
        PriceError: If a field is not possible; the message says which.

    >>> RandomWalk(num_bars=100, num_assets=2).bars.close.shape
    (100, 2)
    """

    num_bars: int = 2_000
    num_assets: int = 1
    volatility: float = 0.2
    overnight: float | None = 0.25
    seed: int = 0

    @property
    def note(self) -> str:
        return "without drift, nothing can be earned, but by chance."

    def load(self) -> Bars:
        self._require_possible()
        rng = np.random.default_rng(self.seed)
        shape, night = (self.num_bars, self.num_assets), self.overnight or 0.0
        variance = self.volatility**2 / DAYS
        nights, days = (
            rng.normal(-part * variance / 2, np.sqrt(part * variance), shape)
            for part in (night, 1 - night)
        )
        close = 100 * np.exp(np.cumsum(nights + days, axis=0))
        weekdays = np.busday_offset(FIRST_DAY, np.arange(self.num_bars))
        return Bars(
            times=weekdays.astype("datetime64[ns]"),
            symbols=tuple(f"WALK{i}" for i in range(self.num_assets)),
            close=close,
            open=None if self.overnight is None else close * np.exp(-days),
            tradable=np.ones(shape, bool),
        )

    def _require_possible(self) -> None:
        night = 0.0 if self.overnight is None else self.overnight
        most = f"1 to {MOST_DAYS}, until nanoseconds end in 2262"
        for field, possible, expected in (
            ("num_bars", _is_count(self.num_bars, MOST_DAYS), most),
            ("num_assets", _is_count(self.num_assets), "1 or more"),
            ("volatility", 0 <= self.volatility < np.inf, "a finite number ≥ 0"),
            ("overnight", 0 <= night <= 1, "a number in [0, 1], or None"),
        ):
            if not possible:
                told = f"expected {expected}, got {getattr(self, field)}"
                raise PriceError(f"RandomWalk.{field}: {told}")


def _is_count(number: Any, most: float = np.inf) -> bool:
    return isinstance(number, Integral) and 1 <= int(number) <= most


@dataclasses.dataclass(frozen=True, eq=False, repr=False)
class Shuffled(Prices):
    """Other prices with their returns in random order: the past tells nothing.

    The bars of all assets are shuffled together, so that prices end where they ended,
    and the common moves of assets stay.

    >>> walk = RandomWalk(num_bars=100)
    >>> Shuffled(walk).bars.close[-1].round(9) == walk.bars.close[-1].round(9)
    array([ True])
    """

    prices: Prices
    seed: int = 0

    @property
    def note(self) -> str:
        return f"in random order. {self.prices.note}".strip()

    def load(self) -> Bars:
        bars = self.prices.bars
        order = np.random.default_rng(self.seed).permutation(len(bars.times) - 1) + 1
        steps = np.log(bars.close[1:] / bars.close[:-1])[order - 1]
        path = np.concatenate([np.zeros_like(steps[:1]), np.cumsum(steps, axis=0)])
        close, moved = bars.close[0] * np.exp(path), np.concatenate([[0], order])
        first = None if bars.open is None else close * (bars.open / bars.close)[moved]
        return bars._replace(close=close, open=first, tradable=bars.tradable[moved])

"""Prices of a file that grows, such as those that paper trading follows."""

import dataclasses
from collections.abc import Sequence
from pathlib import Path

from ppo_jax.component.suggestion import unknown
from ppo_jax.envs.trading import PriceError, PriceFile, Prices, Trading
from ppo_jax.envs.trading.bars import Bars
from ppo_jax.envs.trading.checks import REPAIRS, examined
from ppo_jax.envs.trading.files import Cells
from ppo_jax.envs.trading.repairs import adjust
from ppo_jax.envs.trading.table import Table, table
from ppo_jax.envs.trading.table import bars as bars_of
from ppo_jax.errors import UserError


@dataclasses.dataclass(frozen=True, eq=False, repr=False)
class GrowingFile(PriceFile):
    """Prices of a file that is written while it is read.

    Raises:
        PriceError: At construction, as `PriceFile`, for a last line without its end, as
            the rest of its last number may be on its way, and for a last bar that lacks
            an asset, as that may be.
    """

    def load(self) -> Bars:
        found = table(self.read())
        _require_whole(found)
        asked = {*self.repairs}
        if "adjusted" not in found.rows:
            asked -= {adjust}
        return bars_of(examined(found, asked))

    def read(self) -> Cells:
        found = super().read()
        if not found.ended:
            message = (
                "the last line has no end, and may be half of one; expected its end"
            )
            raise PriceError(f"{self.path}, line {found.place[-1]}: {message}")
        return found


def prices_like(env: Trading, path: Path, repairs: Sequence[str] = ()) -> Prices:
    """Reads prices from a file that grows, repaired as those of an environment were.

    Prices that have no adjusted closes beside them are taken as they are. An asset that
    is called as its file, since no column names it, may be any.

    Args:
        env: The market of the agent.
        path: The file.
        repairs: Names of more repairs, for what the file has had since.

    Raises:
        UserError: If the prices cannot be used, or are of other assets, or there is no
            such repair.
    """
    known = {each.__name__: each for each in REPAIRS}
    for name in repairs:
        if name not in known:
            raise UserError(f"--repairs: {unknown('repair', name, list(known))}")
    own = getattr(env.prices, "repairs", ())
    prices = GrowingFile(str(path), (*own, *(known[name] for name in repairs)))
    expected, got = env.prices.bars.symbols, prices.bars.symbols
    nameless = _is_nameless(prices) or _is_nameless(env.prices)
    if got != expected and not (nameless and len(got) == len(expected)):
        message = f"expected the assets {', '.join(expected)}, got {', '.join(got)}"
        raise UserError(f"{path}: {message}, in this order")
    return prices


def _require_whole(table: Table) -> None:
    """Raises a `PriceError` unless the last bar has a close of each asset."""
    known = table.rows.dropna(subset=["close"])
    last = known[known["time"] == table.rows["time"].max()]
    for symbol in sorted({*table.rows["symbol"]} - {*last["symbol"]})[:1]:
        raise PriceError(
            f"{table.name}: the last bar has no close of {symbol}, which may be on its "
            "way; expected one of each asset"
        )


def _is_nameless(prices: Prices) -> bool:
    """Returns whether there is one asset, which is called as its file."""
    return prices.bars.symbols == (Path(getattr(prices, "path", "")).stem,)

"""Files that grow: half of what is on its way is refused, and repairs go on."""

from types import SimpleNamespace

import numpy as np
import pytest
from traders import csv_of

from ppo_jax.backtests import growing
from ppo_jax.envs.trading import Bars, PriceFile, RandomWalk, repairs
from ppo_jax.errors import UserError

FIRST, LAST = 100, 107
MARKET = SimpleNamespace(prices=RandomWalk(num_bars=LAST + 1, num_assets=2))
BARS = MARKET.prices.bars


@pytest.mark.parametrize("cut", [1, 3])
def test_a_line_without_its_end_is_refused(tmp_path, cut):
    """Digits may be missing; who trains at a file that lacks a newline may do so."""
    path, text = tmp_path / "prices.csv", csv_of(BARS, FIRST + 1)
    path.write_text(text[:-cut])
    said = rf"prices\.csv, line {2 * FIRST + 3}: the last line has no end"
    with pytest.raises(UserError, match=said):
        growing.prices_like(MARKET, path)
    known = PriceFile(str(path))
    path.write_text(text)
    assert (growing.prices_like(MARKET, path) == known) == (cut == 1)


@pytest.mark.parametrize("left", ["", "{day},WALK1,,"], ids=["no row", "no price"])
def test_half_of_a_bar_is_refused(tmp_path, left):
    """Also where it could be filled, as the other half may be on its way."""
    path = tmp_path / "prices.csv"
    whole = csv_of(BARS, FIRST + 1)
    day = whole.splitlines()[-1].split(",")[0]
    rows = [*whole.splitlines()[:-1], *([left.format(day=day)] if left else [])]
    path.write_text("\n".join(rows) + "\n")
    filling = SimpleNamespace(bars=BARS, repairs=(repairs.forward_fill,))
    env = SimpleNamespace(prices=filling)
    with pytest.raises(UserError, match="the last bar has no close of WALK1, which"):
        growing.prices_like(env, path)
    path.write_text(whole)
    assert len(growing.prices_like(env, path).bars.times) == FIRST + 1


def test_what_was_adjusted_for_training_may_come_as_it_is(tmp_path):
    """Adjusted closes change their past; with them beside the others, they count."""
    path, plain = tmp_path / "prices.csv", csv_of(BARS, FIRST + 1)
    env = SimpleNamespace(prices=SimpleNamespace(bars=BARS, repairs=(repairs.adjust,)))
    path.write_text(plain)
    found = growing.prices_like(env, path).bars
    np.testing.assert_allclose(found.close, BARS.close[: FIRST + 1], rtol=1e-12)
    header, *rows = plain.splitlines()
    halved = [f"{row},{float(row.split(',')[-1]) / 2!r}" for row in rows]
    path.write_text("\n".join([f"{header},adj close", *halved]) + "\n")
    adjusted = growing.prices_like(env, path).bars
    np.testing.assert_allclose(adjusted.close, found.close / 2, rtol=1e-12)


def test_what_a_file_has_had_since_may_be_repaired(tmp_path):
    """A jump to a half, which prices of the training did not have."""
    halved = np.where(np.arange(LAST + 1)[:, None] < FIRST, 1.0, 0.5)
    bars = BARS._replace(close=BARS.close * halved, open=BARS.open * halved)
    path = tmp_path / "prices.csv"
    path.write_text(csv_of(bars, FIRST + 1))
    with pytest.raises(UserError, match=r"as at a split .* accept_jumps"):
        growing.prices_like(MARKET, path)
    found = growing.prices_like(MARKET, path, ["accept_jumps"]).bars
    np.testing.assert_allclose(found.close[-1], bars.close[FIRST], rtol=1e-12)
    with pytest.raises(UserError, match=r"^--repairs: no repair .* 'accept_jumps'$"):
        growing.prices_like(MARKET, path, ["accept_jump"])


@pytest.mark.parametrize("trained", ["AAPL.csv", "prices.csv"])
@pytest.mark.parametrize("file", ["MSFT.csv", "new.csv"])
def test_one_asset_is_another_one_if_columns_name_both(tmp_path, trained, file):
    """Not if either is called as its file, which may be so without a column."""
    one = [x[:, :1] for x in (BARS.close, BARS.open, BARS.tradable)]
    apple, microsoft = (Bars(BARS.times, (x,), *one) for x in ("AAPL", "MSFT"))
    path = tmp_path / file
    path.write_text(csv_of(microsoft, LAST + 1))
    env = SimpleNamespace(prices=SimpleNamespace(bars=apple, path=trained))
    if (trained, file) == ("prices.csv", "new.csv"):
        with pytest.raises(UserError, match="expected the assets AAPL, got MSFT"):
            growing.prices_like(env, path)
    else:
        assert growing.prices_like(env, path).bars.symbols == ("MSFT",)

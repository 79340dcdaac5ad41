"""Prices of files by their content, and those that come with packages."""

import numpy as np
import pytest
from price_files import GOOD

from ppo_jax.envs.trading import (
    PriceFile,
    Shuffled,
    Sp500Index,
    Sp500Stocks,
    Stocks,
)
from ppo_jax.envs.trading.files import PriceError
from ppo_jax.envs.trading.repairs import sort_rows


def test_files_of_the_same_content_are_equal(tmp_path):
    one, other = tmp_path / "one.csv", tmp_path / "other" / "one.csv"
    other.parent.mkdir()
    one.write_text(GOOD)
    other.write_text(GOOD.replace("\n", "\r\n"))
    prices = PriceFile(str(one))
    assert prices == PriceFile(str(other), repairs=(sort_rows,))
    shown = f"PriceFile(path={str(one)!r}, repairs=(), sha256={prices.sha256!r})"
    assert repr(prices) == shown
    for asked in (sort_rows, [sort_rows]):
        same = PriceFile(other, asked)
        assert (same.path, same.repairs) == (str(other), (sort_rows,))
    other.write_text(GOOD.replace("2000-01-03", "2000-01-02"))
    assert prices != PriceFile(str(other))


def test_a_source_says_what_it_leaves_out(tmp_path):
    """Stocks are survivors, an index has none; of a file only its owner knows."""
    (tmp_path / "mine.csv").write_text(GOOD)
    mine = PriceFile(str(tmp_path / "mine.csv"))
    assert mine.note == (
        "companies that were delisted are missing if the file leaves them out."
    )
    assert Shuffled(mine).note == f"in random order. {mine.note}"
    pytest.importorskip("skfolio")
    assert "survivors" in Sp500Stocks().note and Sp500Index().note == ""


def test_what_is_not_installed_is_told(monkeypatch):
    for kind in (Stocks, Sp500Stocks, Sp500Index):
        monkeypatch.setattr(kind, "package", "no_such_package.of_prices")
        with pytest.raises(PriceError, match=r"pip install 'ppo_jax\[market\]'"):
            kind()


def test_stocks_are_adjusted_and_traded_at_opens():
    """AAPL split in two in June 2000 and February 2005."""
    pytest.importorskip("bokeh_sampledata")
    bars = Stocks().bars
    assert bars.close.shape == bars.open.shape == (3270, 3)
    assert bars.symbols == ("AAPL", "IBM", "MSFT")
    assert np.abs(np.log(bars.open[1:] / bars.close[:-1])).max() < 0.65
    assert str(Stocks(symbols=("GOOG",)).bars.times[0])[:10] == "2004-08-19"
    late = Stocks(symbols=("FB", "AAPL")).bars
    assert str(late.times[0])[:10] == "2012-05-18" and set(late.symbols) == {
        "AAPL",
        "FB",
    }
    with pytest.raises(PriceError, match="no asset is called 'APPL'; the closest is"):
        Stocks(symbols=("APPL",))


def test_twenty_stocks_and_their_index_are_of_the_same_days():
    pytest.importorskip("skfolio")
    stocks, index = Sp500Stocks().bars, Sp500Index().bars
    assert stocks.close.shape == (8313, 20) and index.close.shape == (8313, 1)
    np.testing.assert_array_equal(stocks.times, index.times)
    assert stocks.open is None and stocks.tradable.all()
    some = Sp500Stocks(symbols=("KO", "GE")).bars
    assert some.symbols == ("KO", "GE")
    np.testing.assert_array_equal(
        some.close[:, 0], stocks.close[:, stocks.symbols.index("KO")]
    )

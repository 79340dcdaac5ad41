"""Layouts of files, and what their columns say."""

import numpy as np
import pytest
from price_files import GOOD, bars_of, long, side_by_side, text, zoned

from ppo_jax.envs.trading import PriceError, PriceFile, RandomWalk


@pytest.fixture
def read(tmp_path):
    def prices(content):
        path = tmp_path / "prices.csv"
        path.write_text(content)
        return PriceFile(str(path)).bars

    return prices


def test_one_asset_is_called_as_its_file(read):
    bars, walk = read(GOOD), RandomWalk(100).bars
    assert bars.symbols == ("prices",)
    np.testing.assert_array_equal(bars.times, walk.times)
    np.testing.assert_allclose(bars.close, walk.close, atol=1e-4)
    np.testing.assert_allclose(bars.open, walk.open, atol=1e-4)


def test_assets_below_each_other_and_side_by_side(read):
    """A symbol may be called as a price is."""
    below, beside = read(long(("AAPL", "LOW", "MSFT"))), read(side_by_side())
    assert below.symbols == beside.symbols == ("AAPL", "LOW", "MSFT")
    for one, other in zip(below, beside, strict=True):
        np.testing.assert_array_equal(one, other)
    assert beside.open is None


def test_names_of_columns_may_be_written_in_many_ways(read):
    header = "Date, OPEN ,High,Low,Close,Volume"
    lines = [header, *bars_of(100)[1:]]
    np.testing.assert_array_equal(read(text(lines)).close, read(GOOD).close)


def test_times_are_in_utc(read):
    hours = {zone: read(zoned(zone)).times[0] for zone in ("", "Z", "+02:00", "-05:00")}
    day = np.datetime64("2000-01-03")
    assert [int((time - day) / np.timedelta64(1, "h")) for time in hours.values()] == [
        16,
        16,
        14,
        21,
    ]


def test_without_a_volume_nothing_was_traded(read):
    lines = bars_of(100)
    lines[20] = lines[20].replace(",1000", ",0")
    lines[21] = lines[21].replace(",1000", ",")
    assert np.flatnonzero(~read(text(lines)).tradable).tolist() == [19, 20]
    never = GOOD.replace(",1000", ",0")
    assert read(never).tradable.all()
    late = text([*never.splitlines()[:40], *lines[40:]])
    assert read(late).tradable.all()


def test_a_column_may_say_what_is_tradable(read):
    lines = bars_of(100)
    lines[0] += ",tradable"
    lines[1:] = [f"{line},{int(i != 7)}" for i, line in enumerate(lines[1:])]
    assert np.flatnonzero(~read(text(lines)).tradable).tolist() == [7]


@pytest.mark.parametrize("header", ["price,volume", "open,last", "last,adj close"])
def test_what_is_known_by_its_name_is_no_asset(read, header):
    """A file of one asset, whose close is called in another way."""
    lines = [f"date,{header}", *(f"2020-01-0{day},100,101" for day in range(1, 9))]
    with pytest.raises(PriceError, match="no column is called 'close'"):
        read(text(lines))


@pytest.mark.parametrize("day", ["1600-01-01", "0001-01-01", "2999-12-31"])
def test_a_time_is_one_that_can_be_counted_in_nanoseconds(read, day):
    with pytest.raises(PriceError, match=rf"line 5, .* got '{day}', .* 1678 to 2261"):
        read(text([*bars_of(3), f"{day},1,2,1,1,1000"]))

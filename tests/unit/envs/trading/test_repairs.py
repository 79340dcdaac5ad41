"""What each repair makes of a file that is broken."""

import numpy as np
import pytest
from price_files import BROKEN, GOOD, bars_of, long, text

from ppo_jax.envs.trading import PriceError, PriceFile, repairs
from ppo_jax.envs.trading.checks import REPAIRS

MENDED = {
    "other": repairs.drop_other_columns,
    "zones": repairs.to_utc,
    "disorder": repairs.sort_rows,
    "again": repairs.keep_last,
    "low": repairs.widen_range,
    "outside": repairs.widen_range,
    "missing": repairs.forward_fill,
    "calendars": repairs.drop_incomplete,
    "late": repairs.drop_incomplete,
    "gap": repairs.accept_gaps,
    "split": repairs.undo_splits,
    "reverse_split": repairs.undo_splits,
    "unadjusted": repairs.adjust,
}


@pytest.fixture
def read(tmp_path):
    def prices(content, *asked):
        path = tmp_path / "prices.csv"
        path.write_text(content)
        return PriceFile(str(path), asked).bars

    return prices


@pytest.mark.parametrize("name", MENDED)
def test_a_file_is_mended_by_the_repair_that_is_offered(read, name):
    with pytest.raises(PriceError, match=MENDED[name].__name__):
        read(BROKEN[name][0])
    bars = read(BROKEN[name][0], MENDED[name])
    assert np.isfinite(bars.close).all() and (np.diff(bars.times.astype(int)) > 0).all()


def test_a_file_that_is_whole_stays_as_it_is(read):
    asked = {*REPAIRS} - {repairs.adjust}  # There are no adjusted closes.
    whole, mended = read(GOOD), read(GOOD, *asked)
    for one, other in zip(whole, mended, strict=True):
        np.testing.assert_array_equal(one, other)


def test_a_missing_price_is_the_last_close_and_is_not_traded(read):
    whole, filled = read(GOOD), read(BROKEN["missing"][0], repairs.forward_fill)
    assert filled.close[10] == filled.open[10] == whole.close[9]
    assert np.flatnonzero(~filled.tradable).tolist() == [10]
    np.testing.assert_array_equal(
        np.delete(filled.close, 10), np.delete(whole.close, 10)
    )


@pytest.mark.parametrize("day", [1, 5])
def test_a_close_that_is_known_stays_where_another_price_is_missing(read, day):
    """It is the last one there is, adjusted as it was."""
    lines = [f"2020-01-{x:02},{98 + x},{100 + x},{50 + x / 2}" for x in range(1, 10)]
    lines[day - 1] = lines[day - 1].replace(f",{98 + day},", ",,")
    table = text(["date,open,close,adj close", *lines])
    filled = read(table, repairs.forward_fill, repairs.adjust)
    assert filled.close[:, 0].tolist() == [50 + x / 2 for x in range(1, 10)]
    assert filled.open[day - 1] == filled.close[day - 1]
    assert np.flatnonzero(~filled.tradable).tolist() == [day - 1]


def test_an_asset_that_begins_late_has_no_price_to_be_filled_with(read):
    with pytest.raises(PriceError, match=r"2000-01-03 00:00:00, but B has none"):
        read(BROKEN["late"][0], repairs.forward_fill)
    filled = read(BROKEN["calendars"][0], repairs.forward_fill)
    assert filled.close[7, 1] == filled.close[6, 1]
    assert not filled.tradable[7, 1] and filled.tradable.sum() == 179


def test_the_newest_first_are_the_same_bars_as_the_oldest_first(read):
    """Before its first volume an asset is traded, and later not without one."""
    header, *days = bars_of(90)
    lines = [f"symbol,{header}"]
    for i, line in enumerate(days):
        for name, first in (("A", 10), ("B", 20)):
            volume = 1000 if i >= first and i != 50 else 0
            lines.append(f"{name},{line.removesuffix('1000')}{volume}")
    whole = read(text(lines))
    turned = read(text([lines[0], *lines[:0:-1]]), repairs.sort_rows)
    assert np.argwhere(~whole.tradable).tolist() == [[50, 0], [50, 1]]
    assert whole.symbols == turned.symbols[::-1] == ("A", "B")
    for name in ("close", "open", "tradable"):
        one, other = getattr(whole, name), getattr(turned, name)
        np.testing.assert_array_equal(one, other[:, ::-1], name)


def test_prices_that_are_not_positive_are_missing(read):
    mend = (repairs.blank_non_positive, repairs.forward_fill)
    filled = read(BROKEN["zero"][0], *mend)
    assert filled.open[10] == filled.close[10] and not filled.tradable[10]
    with pytest.raises(PriceError, match="a price is missing"):
        read(BROKEN["zero"][0], repairs.blank_non_positive)


def test_bars_that_are_incomplete_are_dropped(read):
    bars = read(BROKEN["calendars"][0], repairs.drop_incomplete)
    assert bars.close.shape == (89, 2)
    whole = read(long())
    np.testing.assert_array_equal(bars.close, np.delete(whole.close, 7, axis=0))


@pytest.mark.parametrize("name", ["split", "reverse_split"])
def test_a_split_that_is_undone_leaves_the_returns_of_other_days(read, name):
    """The jump itself keeps what is not the split's."""
    whole, mended = read(GOOD), read(BROKEN[name][0], repairs.undo_splits)
    for one, other in ((whole.close, mended.close), (whole.open, mended.open)):
        np.testing.assert_allclose(one / one[-1], other / other[-1], rtol=1e-5)


def test_adjusted_closes_scale_all_prices(read):
    whole, mended = read(GOOD), read(BROKEN["unadjusted"][0], repairs.adjust)
    scale = np.where(np.arange(100) < 48, 0.9, 1.0)[:, None]
    np.testing.assert_allclose(mended.close, whole.close * scale, rtol=1e-6)
    np.testing.assert_allclose(mended.open, whole.open * scale, rtol=1e-6)
    kept = read(BROKEN["unadjusted"][0], repairs.accept_unadjusted)
    np.testing.assert_array_equal(kept.close, whole.close)


def test_jumps_are_kept_where_they_are_accepted(read):
    bars = read(BROKEN["split"][0], repairs.accept_jumps)
    assert bars.close[58] / bars.close[57] < 0.55


@pytest.mark.parametrize(
    ("name", "mend", "accept"),
    [
        ("split", repairs.undo_splits, repairs.accept_jumps),
        ("unadjusted", repairs.adjust, repairs.accept_unadjusted),
    ],
)
def test_what_is_mended_stays_so_where_the_rest_is_accepted(read, name, mend, accept):
    mended, both = read(BROKEN[name][0], mend), read(BROKEN[name][0], accept, mend)
    np.testing.assert_array_equal(both.close, mended.close)


def test_the_last_of_several_rows_counts(read):
    lines = bars_of(90)
    day = lines[30].split(",")[0]
    lines.insert(31, f"{day},50,60,40,55,10")
    assert read(text(lines), repairs.keep_last, repairs.accept_jumps).close[29] == 55.0


def test_what_has_no_adjusted_closes_is_not_adjusted_by_them(read):
    with pytest.raises(PriceError, match=r"no column 'adj close', which .* adjust is"):
        read(GOOD, repairs.adjust)


def test_a_missing_price_is_adjusted_as_the_last_one(read):
    """A file of two assets, of which the second one has no bar on the fifth day."""
    lines = ["date,symbol,close,adj close"]
    for day in range(1, 11):
        lines += [f"2020-01-{day:02},A,{100 + day},{50 + day / 2}"]
        lines += [f"2020-01-{day:02},B,{10 + day},{9 + 0.9 * day}"]
    lines.remove("2020-01-05,B,15,13.5")
    bars = read(text(lines), repairs.forward_fill, repairs.adjust)
    assert bars.close[:, 0].tolist() == [50 + day / 2 for day in range(1, 11)]
    expected = [9 + 0.9 * day for day in (1, 2, 3, 4, 4, 6, 7, 8, 9, 10)]
    np.testing.assert_allclose(bars.close[:, 1], expected, rtol=1e-12)
    assert np.argwhere(~bars.tradable).tolist() == [[4, 1]]


def test_a_row_that_was_filled_in_is_found_in_the_file(read):
    """A line is a whole number, that of the row before."""
    lines = [f"2020-01-{day:02},A,1" for day in range(1, 10)]
    lines += [f"2020-01-{day:02},B,1" for day in (1, 2, 5, 6, 7, 8, 9)]
    lines[-5] = "2020-01-05,B,3"
    with pytest.raises(PriceError, match=r"line 13, column 'close': B jumped"):
        read(text(["date,symbol,close", *lines]), repairs.forward_fill)

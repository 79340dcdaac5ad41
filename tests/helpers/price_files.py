"""Files of prices: good ones, and each way in which one is broken."""

from ppo_jax.envs.trading import RandomWalk


def bars_of(count, header="date,open,high,low,close,volume"):
    """Returns lines of a file of daily bars, the header first."""
    bars = RandomWalk(count).bars
    lines = [header]
    for time, begin, end in zip(bars.times, *bars.open.T, *bars.close.T, strict=True):
        high, low = max(begin, end) + 1, min(begin, end) - 1
        day = str(time)[:10]
        lines.append(f"{day},{begin:.4f},{high:.4f},{low:.4f},{end:.4f},1000")
    return lines


def text(lines):
    return "\n".join(lines) + "\n"


def cell(line, column, value):
    """Returns the good file with another cell in a line, counted as editors do."""
    lines = bars_of(100)
    cells = lines[line - 1].split(",")
    cells[column] = value
    lines[line - 1] = ",".join(cells)
    return text(lines)


def long(symbols="AB", count=90, skip=()):
    """Returns a file of assets below each other; `skip` has pairs (symbol, number)."""
    lines = ["date,symbol,close"]
    for symbol in symbols:
        for number, line in enumerate(bars_of(count)[1:]):
            day, _, _, _, close, _ = line.split(",")
            if (symbol, number) not in skip:
                lines.append(f"{day},{symbol},{close}")
    return text(lines)


def side_by_side(symbols=("AAPL", "LOW", "MSFT"), count=90):
    lines = [",".join(["date", *symbols])]
    for line in bars_of(count)[1:]:
        day, *_, close, _ = line.split(",")
        lines.append(",".join([day] + [close] * len(symbols)))
    return text(lines)


def swapped(lines, first, second):
    lines[first], lines[second] = lines[second], lines[first]
    return lines


def split(at, ratio):
    """Divides the prices of a line and of all after it."""
    lines = bars_of(100)
    for i in range(at - 1, len(lines)):
        day, *prices, volume = lines[i].split(",")
        prices = [f"{float(price) / ratio:.4f}" for price in prices]
        lines[i] = ",".join([day, *prices, volume])
    return text(lines)


def zoned(*zones):
    """Returns the good file with times in zones that take turns."""
    lines = bars_of(100)
    for i in range(1, len(lines)):
        day, rest = lines[i].split(",", 1)
        lines[i] = f"{day} 16:00{zones[i % len(zones)]},{rest}"
    return text(lines)


def adjusted(factor):
    """Adds a column of adjusted closes, scaled before the line 50."""
    lines = bars_of(100)
    lines[0] += ",Adj Close"
    for i in range(1, len(lines)):
        close = float(lines[i].split(",")[4])
        lines[i] += f",{close * (factor if i < 49 else 1.0):.6f}"
    return text(lines)


GOOD = text(bars_of(100))
BROKEN = {
    "empty": ("", ["empty.csv: is empty; expected a header, and a row per bar"]),
    "header": ("date,close\n", ["header.csv: is empty; expected a header, and a row"]),
    "semicolons": (GOOD.replace(",", ";"), ["no column is called 'date'", "date;open"]),
    "no_time": (
        GOOD.replace("date", "dat"),
        ["no column is called 'date'; the closest is 'dat'; expected one of"],
    ),
    "two_times": (
        text(f"{line},{i or 'time'}" for i, line in enumerate(bars_of(90))),
        ["columns 'date' and 'time'; expected one of times"],
    ),
    "two_assets": (
        text(
            f"{line},{i or 'asset'},{i or 'ticker'}"
            for i, line in enumerate(bars_of(9))
        ),
        ["columns 'asset' and 'ticker'; expected one of assets"],
    ),
    "two_adjusted": (
        text(
            f"{x},{i or 'Adj Close'},{i or 'adjclose'}"
            for i, x in enumerate(bars_of(9))
        ),
        ["columns 'Adj Close' and 'adjclose'; expected one of adjusted closes"],
    ),
    "no_close": (
        GOOD.replace("close", "clsoe"),
        ["no column is called 'close'; the closest is 'clsoe'"],
    ),
    "twice": (GOOD.replace("open", "Close"), ["two columns 'close'; expected one"]),
    "unnamed": (GOOD.replace("open", ""), ["column 2 has no name; expected a header"]),
    "other": (
        GOOD.replace("open", "opne"),
        [
            "no column of prices is called 'opne'; the closest is 'open'",
            "drop_other_col",
        ],
    ),
    "short_line": (
        text([*bars_of(50), "2000-05-01,1,2"]),
        ["line 52: got 3 cells, expected 6 as in the header 'date,open,high,low,close"],
    ),
    "blank_line": (
        text([*bars_of(50), ""]),
        ["line 52: got an empty line, expected 6"],
    ),
    "american": (
        cell(7, 0, "01/11/2000"),
        ["line 7, column 'date': got '01/11/2000', expected a time as 2020-01-31 or"],
    ),
    "no_such_day": (
        cell(7, 0, "2000-02-30"),
        ["line 7, column 'date': got '2000-02-30"],
    ),
    "text": (
        cell(9, 4, "n.a."),
        ["line 9, column 'close': got 'n.a.', expected a numb"],
    ),
    "thousands": (cell(9, 1, "1 234.5"), ["line 9, column 'open': got '1 234.5', exp"]),
    "missing": (
        cell(12, 4, ""),
        ["line 12, column 'close': a price is missing; there are repairs: forward_f"],
    ),
    "negative": (
        cell(12, 3, "-4"),
        ["line 12, column 'low': got -4, expected a price > 0", "blank_non_positive"],
    ),
    "zero": (cell(12, 1, "0"), ["line 12, column 'open': got 0, expected a price > 0"]),
    "infinite": (
        cell(12, 2, "inf"),
        ["line 12, column 'high': got inf, expected a fin"],
    ),
    "low": (
        cell(12, 2, "50"),
        ["line 12, column 'open': got", "expected at most the high, 50", "widen_range"],
    ),
    "outside": (
        cell(12, 4, "101.9"),
        ["line 12, column 'close': got 101.9, expected at", "widen_range"],
    ),
    "disorder": (
        text(swapped(bars_of(100), 19, 20)),
        [
            "line 21: got 2000-01-27 00:00:00 after 2000-01-28",
            "the oldest first",
            "sort",
        ],
    ),
    "again": (
        cell(21, 0, "2000-01-27"),
        ["line 21: got 2000-01-27 00:00:00 of again again, as in line 20", "keep_last"],
    ),
    "gap": (
        text(bars_of(100)[:40] + bars_of(100)[50:]),
        ["line 41: got a gap from 2000-02-24 00:00:00 to 2000-03-10", "accept_gaps"],
    ),
    "split": (
        split(60, 2),
        [
            "line 60, column 'open': split jumped to about 0.5 of the clos",
            "undo_splits",
        ],
    ),
    "reverse_split": (
        split(60, 0.1),
        ["reverse_split jumped to about 10 of the close"],
    ),
    "unadjusted": (
        adjusted(0.9),
        [
            "line 2, column 'Adj Close': got",
            "adjusted for splits and dividends",
            "adjust",
        ],
    ),
    "zones": (
        zoned("-05:00", "-04:00"),
        [
            "line 3: got a time in zone -05:00, and one in zone -04:00 in line 2",
            "to_utc",
        ],
    ),
    "zoneless": (
        zoned("Z", ""),
        ["line 3: got a time in zone Z, and one without a zone"],
    ),
    "calendars": (
        long(skip=[("B", 7)]),
        [
            "line 9: A has a bar at 2000-01-12 00:00:00, but B has none",
            "drop_incomplete",
        ],
    ),
    "late": (
        long(skip=[("B", i) for i in range(20)]),
        ["line 2: A has a bar at 2000-01-03 00:00:00, but B has none"],
    ),
    "nameless": (
        long().replace(",B,", ",,", 1),
        ["line 92, column 'symbol': no asset is named"],
    ),
    "few": (text(bars_of(2)), ["few.csv: got 2 bars, expected at least 3"]),
}
"""Texts of files by name, and parts of the messages about them."""

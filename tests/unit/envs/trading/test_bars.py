"""Arrays of prices, and what they are known by."""

import numpy as np
import pytest

from ppo_jax.envs.trading import RandomWalk
from ppo_jax.envs.trading.bars import digest

BARS = RandomWalk(100, 2).bars


def test_a_digest_tells_all_that_bars_say():
    others = [
        BARS._replace(times=BARS.times + np.timedelta64(1, "ns")),
        BARS._replace(symbols=("WALK0", "OTHER")),
        BARS._replace(close=BARS.close + 1e-9),
        BARS._replace(open=None),
        BARS._replace(open=BARS.open + 1e-9),
        BARS._replace(tradable=~BARS.tradable),
    ]
    assert len({digest(bars) for bars in (BARS, *others)}) == 1 + len(others)
    assert digest(BARS) == digest(RandomWalk(100, 2).bars)


def test_orders_are_filled_at_opens_where_there_are_any():
    assert BARS.fill is BARS.open
    assert BARS._replace(open=None).fill is BARS.close


def test_a_weekend_is_three_days_of_a_year():
    """Bars begin on a Monday."""
    days = BARS.years[:7] * 365.25
    np.testing.assert_allclose(days, [0, 1, 1, 1, 1, 3, 1])


@pytest.mark.parametrize(
    ("hours", "expected"),
    [
        ([24, 24, 24, 24, 72], 252),
        ([24], 365.25),
        ([168], 365.25 / 7),
        ([1] * 6 + [18], 7 * 365.25),
    ],
    ids=["weekdays", "days", "weeks", "hours of days"],
)
def test_a_year_has_252_weekdays_or_as_many_bars_as_there_are(hours, expected):
    spacing = np.tile(hours, 200) * np.timedelta64(1, "h")
    times = np.datetime64("2000-01-03", "ns") + np.cumsum(spacing)
    assert BARS._replace(times=times).of_a_year == pytest.approx(expected, rel=0.01)

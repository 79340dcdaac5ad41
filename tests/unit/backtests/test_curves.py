"""Times as years."""

import numpy as np

from ppo_jax.backtests.curves import years


def test_years_follow_the_calendar():
    days = np.array(["1999-12-31", "2000-12-31", "2020-03-16"], "datetime64[ns]")
    expected = [2000 - 1 / 365, 2001 - 1 / 366, 2020 + 75 / 366]
    np.testing.assert_allclose(years(days), expected, atol=1.2 / 365)

"""Features that know what nobody knew."""

import numpy as np
import pytest

from ppo_jax.component import component
from ppo_jax.envs.trading import Features, RandomWalk, Trading
from ppo_jax.envs.trading.causality import require_causal

WALK = RandomWalk(300, 2)


@component
class Shifted(Features):
    """As they are `ahead` bars later."""

    ahead: int = 1

    def __call__(self, bars):
        seen = super().__call__(bars)
        return np.concatenate([seen[self.ahead :], seen[: self.ahead]])


@component
class Scaled(Features):
    """Divided by deviations of all bars, as whoever scales a whole file does."""

    def __call__(self, bars):
        seen = super().__call__(bars)
        return seen / seen.std(axis=0)


@component
class SameDay(Features):
    """The last feature is what the next open will be."""

    def __call__(self, bars):
        seen = super().__call__(bars)
        ahead = np.roll(bars.open, -1, axis=0) / bars.close - 1
        return np.concatenate([seen, ahead[..., None]], axis=-1)


@component
class Infinite(Features):
    def __call__(self, bars):
        seen = super().__call__(bars)
        seen[70, 1, 2] = np.inf
        return seen


@component
class Flat(Features):
    def __call__(self, bars):
        return super().__call__(bars)[..., 0]


@pytest.mark.parametrize("kind", [Shifted, Scaled, SameDay])
def test_a_feature_that_knows_later_prices_is_refused(kind):
    with pytest.raises(ValueError, match=rf"{kind.__name__}: feature .* at bar"):
        Trading(WALK, features=kind())


def test_features_of_the_past_are_as_they_are():
    for features in (Features(), Shifted(ahead=0)):
        np.testing.assert_array_equal(
            require_causal(features, WALK.bars), Features()(WALK.bars)
        )


def test_features_are_finite_numbers_of_each_asset_at_each_bar():
    with pytest.raises(ValueError, match=r"a finite feature 2 of WALK1 at bar 70, got"):
        Trading(WALK, features=Infinite())
    with pytest.raises(ValueError, match=r"Flat: expected an array \[300, 2, F\]"):
        Trading(WALK, features=Flat())

"""Running averages against worked numbers."""

import chex
import jax
import jax.numpy as jnp
import pytest

from ppo_jax.controllers import Ema, MovingAverage
from ppo_jax.controllers.smoothing import Smoothing


def test_a_moving_average_outlives_its_count():
    """R-A8: the mean of 2, 3 and 7."""
    average = MovingAverage(window=3)
    state = average.init()._replace(last=jnp.array([1.0, 2.0, 3.0]))
    state = average.update(state._replace(count=jnp.int32(2**31 - 1)), 7.0)
    assert average.value(state) == 4.0 and state.count == 2**31 - 1


def test_moving_average_by_hand():
    average, state, got = MovingAverage(window=3), MovingAverage(window=3).init(), []
    assert average.value(state) == 0
    for x in (3.0, 5.0, 1.0, 0.0, 5.0):
        state = average.update(state, x)
        got.append(float(average.value(state)))
    chex.assert_trees_all_close(got, [3.0, 4.0, 3.0, 2.0, 2.0], rtol=1e-6)


def test_ema_begins_at_the_first_number():
    average, state, got = Ema(rate=0.25), Ema(rate=0.25).init(), []
    for x in (4.0, 8.0, 1.0):
        state = average.update(state, x)
        got.append(float(average.value(state)))
    chex.assert_trees_all_close(got, [4.0, 5.0, 4.0], rtol=1e-6)


@pytest.mark.parametrize("average", [MovingAverage(window=3), Ema(rate=0.25)])
def test_before_the_first_number_an_average_is_zero(average):
    value = average.value(average.init())
    chex.assert_shape(value, ())
    chex.assert_type(value, jnp.float32)
    assert value == 0


@pytest.mark.parametrize("average", [MovingAverage(window=3), Ema(rate=0.25)])
def test_an_average_is_carried_by_a_scan(average):
    """Shapes and types of its state stay, and so does what it says."""
    numbers, state, said = jnp.array([3.0, 5.0, 1.0, 0.0, 5.0]), average.init(), []

    def step(state, x):
        state = average.update(state, x)
        return state, average.value(state)

    _, scanned = jax.jit(lambda: jax.lax.scan(step, average.init(), numbers))()
    for x in numbers:
        state = average.update(state, x)
        said.append(average.value(state))
    chex.assert_trees_all_close(scanned, jnp.stack(said), rtol=1e-6)


@pytest.mark.parametrize(
    "make", [lambda: MovingAverage(window=0), lambda: Ema(rate=0.0)]
)
def test_impossible_numbers_are_errors(make):
    with pytest.raises(ValueError, match=r"\w+\.\w+: expected"):
        make()


def test_an_average_has_to_say_what_it_does():
    with pytest.raises(NotImplementedError, match=r"Smoothing\.init: missing"):
        Smoothing().init()

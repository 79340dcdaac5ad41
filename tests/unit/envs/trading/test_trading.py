"""The market against a backtest from its rules, and against what nobody may know."""

import dataclasses
import functools

import chex
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from backtest import backtest

from ppo_jax.component import as_arrays
from ppo_jax.envs import trading
from ppo_jax.envs.trading import Bars, Features, Prices, RandomWalk, Trading

SHORT = Features(horizons=(1, 3), volatility=4, drawdown=5)


@dataclasses.dataclass(frozen=True, eq=False, repr=False)
class Given(Prices):
    """Prices of a test."""

    given: Bars

    def load(self):
        return self.given


@functools.partial(jax.jit, static_argnums=1)
def play(numbers, structure, actions, key):
    """Steps of an episode that is never left: what was seen, paid and owned."""
    env = jax.tree.unflatten(structure, numbers)
    first, account = env.reset(key)

    def step(account, action):
        timestep, account = env.transition(key, account, action)
        return account, (timestep, account)

    return first, jax.lax.scan(step, account, actions)[1]


def traded(env, actions, key=None):
    numbers, structure = jax.tree.flatten(as_arrays(env))
    key = jax.random.key(0) if key is None else key
    return jax.device_get(play(numbers, structure, jnp.asarray(actions), key))


def random_actions(steps, assets, seed=0):
    rng = np.random.default_rng(seed)
    return rng.uniform(-1, 1, (steps, assets)).astype(np.float32)


def holed(prices, seed=0):
    """The same prices, with bars and assets that nobody trades."""
    bars, rng = prices.bars, np.random.default_rng(seed)
    return Given(bars._replace(tradable=rng.random(bars.close.shape) > 0.2))


PRICES = {
    "one asset": RandomWalk(200),
    "closes": RandomWalk(200, 3, overnight=None),
    "many assets": RandomWalk(200, 5),
    "halts": holed(RandomWalk(200, 3)),
}


@pytest.mark.parametrize("leverage", [1.0, 2.5])
@pytest.mark.parametrize("name", PRICES)
def test_an_account_is_that_of_a_backtest_step_by_step(name, leverage):
    """Longs, shorts, leverage, costs and interest, against floats of 64 bits."""
    prices = PRICES[name]
    actions = random_actions(150, len(prices.bars.symbols))
    size = np.maximum(np.abs(actions).sum(axis=1, keepdims=True), 1.0)
    expected = backtest(prices.bars, leverage * actions / size, 5, 20.0, 0.1)
    env = Trading(
        prices, 20.0, 0.1, leverage, window=None, positions=None, features=SHORT
    )
    _, (step, account) = traded(env, actions)
    found = (
        account.equity,
        account.cash,
        account.positions,
        account.turnover,
        account.paid,
        step.reward,
    )
    for ours, theirs in zip(found, zip(*expected, strict=True), strict=True):
        np.testing.assert_allclose(ours, np.array(theirs), rtol=2e-5, atol=2e-6)
    assert account.equity.min() > trading.RUIN
    assert account.positions.min() < -0.2 and account.positions.max() > 0.2
    assert np.array_equal(account.bar, np.arange(6, 156))
    chex.assert_trees_all_equal(step.cost, account.paid)

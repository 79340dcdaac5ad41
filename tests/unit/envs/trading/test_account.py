"""A step of an account by hand."""

import chex
import jax.numpy as jnp

from ppo_jax.envs.trading.account import Broker, Market, opened, settled

BROKER = Broker(cost=100.0, borrow=0.365)
DAY = jnp.float32(1 / 365)


def market(before, fill, close, tradable=True):
    prices = (jnp.array([x], jnp.float32) for x in (before, fill, close))
    return Market(*prices, jnp.array([tradable]), DAY)


def test_two_days_by_hand():
    """Sold short at 100, of which 1 % are costs; the next day 0.1 % are interest."""
    account = opened(jnp.int32(7), jnp.int32(9), 1)
    account = settled(account, jnp.array([-1.0]), market(90.0, 100.0, 80.0), BROKER)
    chex.assert_trees_all_close(account.shares, jnp.array([-0.01]))
    chex.assert_trees_all_close(account.cash, 1.99, rtol=1e-6)
    chex.assert_trees_all_close(account.equity, 1.19, rtol=1e-6)
    chex.assert_trees_all_close(account.positions, jnp.array([-0.8 / 1.19]), rtol=1e-6)
    chex.assert_trees_all_close((account.turnover, account.paid), (1.0, 0.01))
    assert account.bar == 8 and account.end == 9
    account = settled(account, jnp.array([0.0]), market(80.0, 50.0, 60.0), BROKER)
    chex.assert_trees_all_close(account.equity, 1.4842, rtol=1e-6)
    chex.assert_trees_all_close(account.turnover, 0.5 / 1.19, rtol=1e-6)
    chex.assert_trees_all_close(account.paid, 0.0058 / 1.19, rtol=1e-5)
    chex.assert_trees_all_close(account.shares, jnp.array([0.0]))


def test_where_nobody_trades_nothing_is_filled():
    account = opened(jnp.int32(0), jnp.int32(9), 1)
    halted = market(90.0, 100.0, 80.0, tradable=False)
    assert settled(account, jnp.array([1.0]), halted, BROKER).shares == 0.0


def test_whoever_owns_nothing_at_the_open_holds_nothing():
    """Shorts that trebled overnight: what is asked for is of an equity of 0."""
    account = opened(jnp.int32(0), jnp.int32(9), 1)
    account = settled(account, jnp.array([-1.0]), market(1.0, 1.0, 1.0), BROKER)
    account = settled(account, jnp.array([-1.0]), market(1.0, 3.0, 9.0), BROKER)
    assert account.shares == 0.0 and account.equity < 0.0
    assert jnp.isfinite(account.positions).all()

"""A step of an account by hand."""

import chex
import jax.numpy as jnp

from ppo_jax.envs.trading.account import Broker, Market, opened, settled

BROKER = Broker(cost=100.0, borrow=0.365, leverage=1.0)
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


def test_what_nobody_buys_counts_against_what_is_bought():
    """All in the first asset, which has no trade when all is to be in the second."""
    account = opened(jnp.int32(0), jnp.int32(9), 3)
    one, free = jnp.ones(3), Broker(cost=0.0, borrow=0.0, leverage=2.0)
    open_market = Market(one, one, one, one > 0, DAY)
    account = settled(account, jnp.array([1.0, 0.5, 0.0]), open_market, free)
    dearer = open_market._replace(fill=jnp.array([1.5, 1.0, 1.0]))
    stuck = dearer._replace(tradable=jnp.array([False, True, True]), close=dearer.fill)
    after = settled(account, jnp.array([0.0, -1.5, 0.5]), stuck, free)
    # Of an equity of 1.5 as much is stuck, so that as much may be held of the others.
    want = jnp.array([1.0, -0.75, 0.25])
    chex.assert_trees_all_close(after.positions, want, rtol=1e-6)
    less = settled(account, jnp.array([0.0, -0.5, 0.25]), stuck, free)
    want = jnp.array([1.0, -0.5, 0.25])
    chex.assert_trees_all_close(less.positions, want, rtol=1e-6)
    strict = free._replace(leverage=1.0)
    none = settled(account, jnp.array([0.0, -1.5, 0.5]), stuck, strict)
    chex.assert_trees_all_close(none.shares[1:], jnp.zeros(2))


def test_whoever_owns_nothing_at_the_open_holds_nothing():
    """Shorts that trebled overnight: what is asked for is of an equity of 0."""
    account = opened(jnp.int32(0), jnp.int32(9), 1)
    account = settled(account, jnp.array([-1.0]), market(1.0, 1.0, 1.0), BROKER)
    account = settled(account, jnp.array([-1.0]), market(1.0, 3.0, 9.0), BROKER)
    assert account.shares == 0.0 and account.equity < 0.0
    assert jnp.isfinite(account.positions).all()

"""A trader's account, and its change from one close to the next."""

from typing import NamedTuple

import jax.numpy as jnp

from ppo_jax.types import Array


class Account(NamedTuple):
    """State of `Trading` at the close of a bar; money is float32, 1 at the start."""

    bar: Array
    """Index of the bar whose close was seen last, int32 scalar."""
    end: Array
    """The bar at whose close the episode is cut off, int32 scalar."""
    cash: Array
    """Cash; below 0 it is a loan."""
    shares: Array
    """Units of each asset, `[A]`; below 0 they are sold short."""
    equity: Array
    """Cash and the value of the shares at the close of the bar."""
    positions: Array
    """Value of the shares at that close as a share of equity, `[A]`."""
    turnover: Array
    """Amount traded in the last step, as a share of the equity before that step."""
    paid: Array
    """Costs and interest of the last step, as a share of the equity before it."""


class Market(NamedTuple):
    """Prices from one close to the next; arrays are `[A]` unless they are scalars."""

    before: Array
    """Closes at which the orders were decided."""
    fill: Array
    """Prices at which orders are filled."""
    close: Array
    tradable: Array
    """Whether orders are filled, bool."""
    years: Array
    """Years from close to close, scalar."""


class Broker(NamedTuple):
    """The terms of a broker; scalars."""

    cost: Array | float
    """Cost of a trade, in basis points of the amount traded."""
    borrow: Array | float
    """Interest per year, as a share of the amount borrowed."""
    leverage: Array | float
    """Largest sum of positions at a fill, as a share of equity."""


def opened(bar: Array, end: Array, num_assets: int) -> Account:
    """Returns a new account, with nothing but cash."""
    one, zero, none = jnp.ones(()), jnp.zeros(()), jnp.zeros(num_assets)
    return Account(bar, end, one, none, one, none, zero, zero)


def settled(account: Account, target: Array, market: Market, broker: Broker) -> Account:
    """Returns the account at the next close.

    From the previous close until the fill, the old shares are held, and interest is due
    for short positions and loans at that close. Then shares worth `target` · (equity at
    the fill) are held of the assets that are traded, and costs are paid from cash. The
    value of the other assets' shares, which cannot be sold, is subtracted from the
    largest sum of positions.
    """
    owed = jnp.sum(jnp.maximum(-account.shares * market.before, 0.0))
    owed += jnp.maximum(-account.cash, 0.0)
    interest = broker.borrow * market.years * owed
    cash = account.cash - interest
    equity = jnp.maximum(cash + jnp.sum(account.shares * market.fill), 0.0)
    stuck = jnp.where(market.tradable, 0.0, jnp.abs(account.shares * market.fill))
    asked = jnp.where(market.tradable, jnp.abs(target), 0.0).sum() * equity
    room = jnp.maximum(broker.leverage * equity - stuck.sum(), 0.0)
    kept = jnp.where(stuck.any() & (asked > room), room / asked, 1.0)
    wanted = kept * target * equity / market.fill
    shares = jnp.where(market.tradable, wanted, account.shares)
    flows = (shares - account.shares) * market.fill
    traded = jnp.sum(jnp.abs(flows))
    costs = 1e-4 * broker.cost * traded
    cash = cash - jnp.sum(flows) - costs
    values = shares * market.close
    equity = cash + jnp.sum(values)
    return Account(
        bar=account.bar + 1,
        end=account.end,
        cash=cash,
        shares=shares,
        equity=equity,
        positions=values / jnp.where(equity > 0, equity, 1.0),
        turnover=traded / account.equity,
        paid=(costs + interest) / account.equity,
    )

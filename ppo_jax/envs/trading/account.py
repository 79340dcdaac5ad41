"""What a trader owns, and what becomes of it from one close to the next."""

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
    """Below 0 it is a loan."""
    shares: Array
    """Units of each asset, `[A]`; below 0 they are sold short."""
    equity: Array
    """Cash and the value of the shares at the close of the bar."""
    positions: Array
    """Value of the shares at that close as a share of equity, `[A]`."""
    turnover: Array
    """Traded in the step that led here, over the equity before it."""
    paid: Array
    """Costs and interest of that step, over the equity before it."""


class Market(NamedTuple):
    """What happens from one close to the next; each `[A]`, but for scalars."""

    before: Array
    """Closes that were decided at."""
    fill: Array
    """What orders are filled at."""
    close: Array
    tradable: Array
    """Whether orders are filled, bool."""
    years: Array
    """Scalar, from close to close."""


class Broker(NamedTuple):
    """What a broker asks for; scalars."""

    cost: Array | float
    """Basis points of what is traded."""
    borrow: Array | float
    """Of what is borrowed, a year."""
    leverage: Array | float
    """The most that positions may add up to at a fill, as a share of equity."""


def opened(bar: Array, end: Array, num_assets: int) -> Account:
    """Nothing but cash."""
    one, zero, none = jnp.ones(()), jnp.zeros(()), jnp.zeros(num_assets)
    return Account(bar, end, one, none, one, none, zero, zero)


def settled(account: Account, target: Array, market: Market, broker: Broker) -> Account:
    """The account at the next close.

    From the close before until the fill, the old shares are held, and interest is due
    for what they and the cash owe at that close. Then shares worth `target` · (equity
    at the fill) are held, of assets with any trade, and costs are paid from cash. What
    is held of the others, and cannot be sold, is taken off what these may add up to.
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

"""An account of a trader, kept asset by asset in Python's floats, from the rules."""

import math


def backtest(bars, targets, begin, cost=0.0, borrow=0.0, leverage=1.0):
    """What is owned at the closes from bar `begin` on, decided at each of them.

    `targets` `[T, A]` are positions as shares of equity. A row has, at the next close:
    equity, cash, positions, turnover, costs paid, and ln of the growth.
    """
    cash, units, equity = 1.0, [0.0] * len(bars.symbols), 1.0
    assets, fills = range(len(units)), bars.close if bars.open is None else bars.open
    rows = []
    for bar, target in enumerate(targets, begin + 1):
        days = (bars.times[bar] - bars.times[bar - 1]).astype(float) / 86_400e9
        debt = max(0.0, -cash)
        for i in assets:
            if units[i] < 0:
                debt += -units[i] * float(bars.close[bar - 1][i])
        interest = borrow * days / 365.25 * debt
        cash -= interest
        prices = [float(price) for price in fills[bar]]
        worth = cash + sum(units[i] * prices[i] for i in assets)
        fees = traded = 0.0
        target = within(leverage, target, worth, units, prices, bars.tradable[bar])
        for i in assets:
            if bars.tradable[bar][i]:
                wanted = float(target[i]) * max(worth, 0.0) / prices[i]
                amount = abs(wanted - units[i]) * prices[i]
                cash -= (wanted - units[i]) * prices[i]
                traded, fees = traded + amount, fees + amount * cost / 10_000
                units[i] = wanted
        cash -= fees
        values = [units[i] * float(bars.close[bar][i]) for i in assets]
        before, equity = equity, cash + sum(values)
        if equity > 0:
            shares, growth = [x / equity for x in values], math.log(equity / before)
            paid = (fees + interest) / before
            rows.append((equity, cash, shares, traded / before, paid, growth))
    return rows


def within(leverage, target, worth, units, prices, tradable):
    """Positions that, beside what nobody buys, add up to no more than the leverage."""
    stuck = asked = 0.0
    for share, unit, price, free in zip(target, units, prices, tradable, strict=True):
        if free:
            asked += abs(float(share))
        elif unit and worth > 0:
            stuck += abs(unit) * price / worth
    if stuck == 0.0 or stuck + asked <= leverage:
        return target
    return [float(share) * max(leverage - stuck, 0.0) / asked for share in target]

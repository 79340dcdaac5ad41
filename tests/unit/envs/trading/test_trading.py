"""The market against a backtest from its rules, and against what nobody may know."""

import dataclasses
import functools
import itertools
import math

import chex
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from backtest import backtest

from ppo_jax import envs
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
    targets = leverage * actions / size
    expected = backtest(prices.bars, targets, 5, 20.0, 0.1, leverage)
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


@pytest.mark.parametrize("cost", [0.0, 25.0])
@pytest.mark.parametrize("name", ["one asset", "closes", "many assets"])
def test_equity_is_that_of_a_published_backtester(name, cost):
    """`bt` is told the positions; with costs the orders, as it pays them otherwise."""
    bt, pd = pytest.importorskip("bt"), pytest.importorskip("pandas")
    bars = PRICES[name].bars
    actions = random_actions(150, len(bars.symbols), seed=3)
    size = np.maximum(np.abs(actions).sum(axis=1, keepdims=True), 1.0)
    env = Trading(PRICES[name], cost, 0.0, 1.5, window=None, features=SHORT)
    _, (_, account) = traded(env, actions)
    prices = [bars.close] if bars.open is None else [bars.open, bars.close]
    hours = pd.to_timedelta(range(9, 9 + len(prices)), unit="h")
    days = pd.DatetimeIndex(bars.times)
    both = [
        pd.DataFrame(x, days + hour, columns=list(bars.symbols))
        for x, hour in zip(prices, hours, strict=True)
    ]
    target = pd.DataFrame(
        1.5 * actions / size, both[0].index[6:156], columns=list(bars.symbols)
    )

    class Order(bt.Algo):
        def __call__(self, strategy):
            if strategy.now in target.index:
                row = target.index.get_loc(strategy.now)
                wanted = account.shares[row].astype(float)
                held = account.shares[row - 1].astype(float) if row else 0 * wanted
                for symbol, q in zip(bars.symbols, wanted - held, strict=True):
                    strategy.transact(q * 1e6, child=symbol)
            return True

    weigh = [bt.algos.WeighTarget(target), bt.algos.Rebalance()]
    strategy = bt.Strategy("s", [Order()] if cost else weigh, children=bars.symbols)
    backtested = bt.Backtest(
        strategy,
        pd.concat(both).sort_index(),
        initial_capital=1e6,
        commissions=lambda q, p: abs(q) * p * cost / 1e4,
        integer_positions=False,
    )
    backtested.run()
    values = backtested.strategy.values.loc[both[-1].index[6:156]] / 1e6
    np.testing.assert_allclose(account.equity, values, rtol=2e-5)


def test_an_account_is_right_to_a_hundred_thousandth_after_5000_steps():
    """Cash and positions are equity; rewards add up to its logarithm."""
    prices = RandomWalk(5_100, 2)
    drift = np.cumsum(np.random.default_rng(1).normal(0, 0.1, (5_000, 2)), axis=0)
    actions = np.sin(drift).astype(np.float32)
    size = np.maximum(np.abs(actions).sum(axis=1, keepdims=True), 1.0)
    expected = backtest(prices.bars, 1.5 * actions / size, 5, 1.0, 0.03, 1.5)
    env = Trading(prices, 1.0, 0.03, leverage=1.5, window=None, features=SHORT)
    _, (step, account) = traded(env, actions)
    close = prices.bars.close[account.bar]
    owned = account.cash.astype(float) + (account.shares * close).sum(axis=1)
    assert len(expected) == 5_000 and not step.terminated.any()
    np.testing.assert_allclose(owned, account.equity, rtol=1e-5)
    np.testing.assert_allclose(account.equity, [row[0] for row in expected], rtol=1e-5)
    total = np.cumsum(step.reward.astype(float))
    np.testing.assert_allclose(np.exp(total), account.equity, rtol=1e-5)


@pytest.mark.parametrize("name", PRICES)
@pytest.mark.parametrize("number", ["cost", "borrow"])
def test_whoever_pays_more_owns_less(name, number):
    """For the same actions, step by step, whatever they are."""
    prices = PRICES[name]
    env = Trading(prices, window=None, features=SHORT, leverage=2.0)
    rates = (0.0, 0.01, 0.3, 2.0, 30.0)
    markets = [dataclasses.replace(env, **{number: rate}) for rate in rates]
    for seed in range(5):
        actions = random_actions(150, len(prices.bars.symbols), seed)
        equities = []
        for market in markets:
            _, (step, account) = traded(market, actions)
            ended = np.maximum.accumulate(step.terminated)
            equities.append(np.where(ended, 0.0, account.equity))
        for cheap, dear in itertools.pairwise(equities):
            assert (dear <= cheap).all() and dear[-1] < cheap[-1]


def test_who_is_bankrupt_has_ended_and_every_reward_is_finite():
    """A price that rises a hundredfold overnight, and who has sold it short."""
    bars = RandomWalk(40).bars
    scale = np.where(np.arange(40) < 20, 1.0, 100.0)[:, None]
    risen = Given(bars._replace(close=bars.close * scale, open=bars.open * scale))
    env = Trading(risen, window=None, features=SHORT)
    _, (step, account) = traded(env, -np.ones((20, 1)))
    assert np.flatnonzero(step.terminated)[0] == 14 and account.equity[14] < 0
    assert step.reward[14] == np.float32(np.log(trading.RUIN))
    assert np.isfinite(step.reward[:15]).all() and np.isfinite(step.obs[:15]).all()


SPACES = {
    "one asset": (PRICES["one asset"], None, envs.Box((-1.0,), (1.0,))),
    "choices": (PRICES["one asset"], (-1, 0, 0.5), envs.Discrete(3)),
    "many": (PRICES["many assets"], (0, 1), envs.MultiDiscrete((2,) * 5)),
    "halts": (PRICES["halts"], None, envs.Box((-1.0,) * 3, (1.0,) * 3)),
}


@pytest.mark.parametrize(
    ("name", "window"), [*((name, 20) for name in SPACES), ("halts", None)]
)
def test_it_is_an_environment(name, window):
    """Whose steps do not know whether it begins at random, or with its fold."""
    prices, positions, space = SPACES[name]
    env = Trading(prices, positions=positions, window=window, features=SHORT, last=80)
    assert env.action_space == space
    envs.check(env, steps=200)


def test_chosen_positions_are_those_that_are_taken():
    env = Trading(PRICES["many assets"], positions=(-1, 0, 0.5), window=20, cost=0.0)
    _, (_, after) = traded(env, np.array([[0, 1, 2, 2, 1]]))
    (value,) = after.shares * env.prices.bars.open[after.bar]
    np.testing.assert_allclose(value, [-0.5, 0, 0.25, 0.25, 0], atol=1e-6)


def test_episodes_are_windows_of_a_fold_and_reach_all_of_it():
    """Folds are numbers: one program plays all of them."""
    starts = jax.jit(
        lambda env, keys: jax.vmap(lambda key: env.reset(key)[1])(keys),
    )
    keys = jax.random.split(jax.random.key(0), 500)
    env = Trading(PRICES["one asset"], window=10, features=SHORT)
    for first, last in ((5, 30), (100, 200), (150, 161)):
        fold = as_arrays(dataclasses.replace(env, first=first, last=last))
        account = jax.device_get(starts(fold, keys))
        assert set(account.bar) == set(range(first, last - 10))
        assert (account.end == account.bar + 10).all()
    assert starts._cache_size() == 1
    whole = dataclasses.replace(env, first=100, last=150, window=None)
    account = jax.device_get(starts(as_arrays(whole), keys))
    assert set(account.bar) == {100} and set(account.end) == {149}


def test_an_episode_is_cut_off_at_the_last_bar_of_its_fold():
    env = Trading(PRICES["closes"], window=None, features=SHORT, first=50, last=60)
    _, (step, account) = traded(env, np.zeros((9, 3)))
    assert np.flatnonzero(step.truncated).tolist() == [8]
    assert account.bar[8] == 59 and not step.terminated.any()


def test_at_closes_alone_what_is_decided_is_met_one_step_later():
    """Long before a fall from 100 to 95: who sells then pays for it, and falls too."""
    closes = np.full((20, 1), 100.0)
    closes[8:] = 95.0
    closes[9:] = 90.0
    bars = RandomWalk(20, overnight=None).bars
    env = Trading(
        Given(bars._replace(close=closes)), 5.0, window=None, features=SHORT, last=12
    )
    assert env.acts_late and not Trading(RandomWalk(99), window=9).acts_late
    for second, paid in ((1.0, (0.95, 90 / 95)), (0.0, (0.949525, 1.0))):
        _, (step, _) = traded(env, [[1.0], [1.0], [second], [second]])
        np.testing.assert_allclose(np.exp(step.reward[2:]), paid, rtol=1e-6)


def test_bars_without_a_trade_weigh_nothing():
    bars = RandomWalk(60, 2).bars
    bars.tradable[[20, 30]] = False
    bars.tradable[40, 0] = False
    env = Trading(Given(bars), window=None, features=SHORT)
    _, (step, account) = traded(env, random_actions(50, 2))
    assert account.bar[step.weight == 0].tolist() == [20, 30]
    assert (account.turnover[step.weight == 0] == 0).all()


def test_what_does_not_go_together_is_refused():
    walk = PRICES["one asset"]
    for fields, said in (
        (
            {"window": 200},
            r"Trading\.prices: expected more than 263 bars: fea",
        ),
        ({"first": 10}, r"Trading\.first: expected 63 to 178"),
        (
            {"first": 90, "last": 100},
            r"Trading\.last: expected first \+ 22 = 112 to",
        ),
        ({"last": 201}, r"Trading\.last: expected first"),
        ({"first": 70.5}, r"Trading\.first: expected a whole number, or None"),
        ({"last": 199.5}, r"Trading\.last: expected a whole number, or None"),
        (
            {"positions": (0.5, 0.5)},
            r"Trading\.positions: expected distinct",
        ),
        (
            {"positions": (2.0, 0.5)},
            r"Trading\.positions: expected distinct",
        ),
        ({"cost": -1}, r"Trading\.cost: expected a finite number ≥ 0, got -1"),
        ({"leverage": 0.0}, r"Trading\.leverage: expected a finite number > 0"),
        ({"leverage": math.inf}, r"Trading\.leverage: expected a finite number > 0"),
        ({"window": 0}, r"Trading\.window: expected at least 1, or None, got 0"),
        ({"positions": ()}, r"Trading\.positions: expected distinct"),
    ):
        with pytest.raises(ValueError, match=said):
            Trading(walk, **{"window": 21} | fields)

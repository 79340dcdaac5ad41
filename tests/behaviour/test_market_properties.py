"""What holds for whatever prices there are: hypothesis looks for some that break it.

Prices are arguments of one compiled program, so that an example takes milliseconds.
"""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from brief import experiment
from price_files import GOOD, text
from traders import PAST, Shifted

from ppo_jax import Policy, networks
from ppo_jax.component import as_arrays
from ppo_jax.envs.trading import PriceFile, RandomWalk, Trading
from ppo_jax.envs.trading.account import Broker, opened, settled
from ppo_jax.envs.trading.trading import Tape, tape
from ppo_jax.ppo import learner
from ppo_jax.schedules import Progress

hypothesis = pytest.importorskip("hypothesis")
st = hypothesis.strategies
FEW = hypothesis.settings(
    max_examples=30, derandomize=True, deadline=None, database=None
)
UNSHRUNK = hypothesis.settings(FEW, phases=[hypothesis.Phase.generate])

BARS, STEPS = 100, 93
"""Of a file; of an account that is opened at the first bar with features."""
LINEAR = networks.ActorCritic(torso=networks.Mlp(hidden=()))
read = tape.__wrapped__
"""Without a memory, as an example may be read with another rule in force."""
BEGUN = Progress.of(np.array(0.0), 6)


def fractions(low, high, parts):
    """Numbers from low to high; as floats they would be tried at their rounding."""
    return st.integers(low * parts, high * parts).map(lambda x: x / parts)


moves = fractions(-1, 1, 1000).map(lambda x: x / 10)
changes = st.lists(st.tuples(moves, moves, st.booleans()), min_size=8, max_size=8)
"""Overnight, by day, and whether there is a trade; bars take them in turn."""


def rewritten(bar, changed):
    """The good file with other prices in the lines after a bar."""
    lines = GOOD.splitlines()
    close = float(lines[bar + 1].split(",")[4])
    for i in range(bar + 2, len(lines)):
        night, day, traded = changed[i % len(changed)]
        begin = close * (1 + night)
        end = close = begin * (1 + day)
        low, high = min(begin, end), max(begin, end)
        prices = ",".join(f"{x:.6g}" for x in (begin, high, low, end))
        lines[i] = f"{lines[i].split(',')[0]},{prices},{500 * traded}"
    return text(lines)


@pytest.fixture(scope="module")
def journey():
    """Learned before a bar; by bar of the whole, what is seen, done, owned and paid."""
    base = Trading(RandomWalk(BARS), window=6, features=PAST)

    @jax.jit
    def journey(traced, bar):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr("ppo_jax.envs.trading.trading.tape", lambda *_: traced)
            env = dataclasses.replace(base, first=6.0, last=float(BARS))
            config = as_arrays(experiment(env, obs_clip=5.0, network=LINEAR))
            within = dataclasses.replace(config.env, last=bar + 1.0)
            config = dataclasses.replace(config, env=within)
            run = learner.init(config, jax.random.key(0))
            run, _ = learner.iteration(run, BEGUN)
            policy = Policy.of(run.learner)
            whole = dataclasses.replace(base, window=None)
            obs, account = whole.reset(jax.random.key(0))

            def step(carry, _):
                obs, account, state = carry
                action, state = policy.act(state, obs[None])
                timestep, after = whole.transition(
                    jax.random.key(0), account, action[0]
                )
                known = (account.bar, obs, action[0], account.equity)
                return (timestep.obs, after, state), (*known, timestep.reward)

            carry = (obs, account, policy.init(1))
            steps = jax.lax.scan(step, carry, None, STEPS)[1]
            return (run.learner.params, run.learner.obs_moments), steps

    return journey


def require_causal_journeys(journey, features, home, settings):
    """Raises if anything up to a bar depends on what comes after it."""
    number = iter(range(10_000))

    def told(content):
        path = home / f"{next(number)}.csv"
        path.write_text(content)
        return jax.tree.map(jnp.asarray, read(PriceFile(str(path)), features))

    def travelled(prices, bar):
        learned, (at, *decided, reward) = jax.device_get(journey(prices, bar))
        decided = [x[at <= bar] for x in decided]
        return jax.tree.leaves((learned, decided, reward[at < bar])), reward[at >= bar]

    good = told(GOOD)

    @settings
    @hypothesis.given(st.integers(20, BARS - 10), changes)
    def check(bar, changed):
        (known, later), (same, other) = (
            travelled(prices, bar) for prices in (good, told(rewritten(bar, changed)))
        )
        for ours, theirs in zip(known, same, strict=True):
            np.testing.assert_array_equal(ours, theirs)
        assert not np.array_equal(later, other)

    check()


def test_no_prices_after_a_bar_change_anything_up_to_it(journey, tmp_path):
    """From a file to features, steps, statistics of observations and actions."""
    require_causal_journeys(journey, PAST, tmp_path, FEW)


def test_a_feature_shifted_by_one_bar_is_found(journey, tmp_path, monkeypatch):
    """By the journey itself: that Trading refuses such features is turned off."""
    place = "ppo_jax.envs.trading.trading.require_causal"
    monkeypatch.setattr(place, lambda features, bars: features(bars))
    shifted = Shifted(**dataclasses.asdict(PAST))
    with pytest.raises(AssertionError, match="Arrays are not equal"):
        require_causal_journeys(journey, shifted, tmp_path, UNSHRUNK)


@jax.jit
def owned(prices, targets, cost, borrow):
    """Equity at every close, of fixed positions that are asked for; 0 once ruined."""
    traced = Tape(**prices, features=jnp.zeros((len(prices["years"]), 0)))
    bars, assets = traced.close.shape

    def step(account, target):
        broker = Broker(cost, borrow, leverage=2.0)
        after = settled(account, target, traced.after(account.bar), broker)
        return after, after.equity

    begun = opened(jnp.int32(0), jnp.int32(bars - 1), assets)
    equity = jax.lax.scan(step, begun, targets)[1]
    return jnp.where(jax.lax.cummin(equity) > 0.01, equity, 0.0)


shares = fractions(-1, 1, 100)
orders = st.lists(st.tuples(shares, shares), min_size=11, max_size=11)
rates = fractions(0, 50, 10)


@FEW
@hypothesis.given(changes, orders, rates, rates, st.sampled_from((0.0, 0.05)))
def test_raising_costs_never_raises_equity(changed, orders, cost, more, borrow):
    """Whatever is asked for, long or short, in two assets, with halts and interest."""
    night, day, traded = (np.array(x) for x in zip(*changed, strict=True))
    turns = np.arange(12)[:, None] + [0, 3]
    fill, growth = 1 + night[turns % 8], (1 + night[turns % 8]) * (1 + day[turns % 8])
    close = 100 * np.cumprod(growth, axis=0)
    prices = {
        "close": np.float32(close),
        "fill": np.float32(close / growth * fill),
        "tradable": traded[turns % 8],
        "years": np.full(12, 1 / 252, np.float32),
    }
    cheap, dear = (
        np.asarray(owned(prices, np.float32(orders), np.float32(x), np.float32(borrow)))
        for x in (cost, cost + more)
    )
    assert (dear <= cheap * (1 + 1e-6)).all()

"""Paper trading: bar by bar as in the backtest, once each, on a past that stays."""

import dataclasses
import itertools
import json

import jax
import numpy as np
import pytest
from traders import FEATURES, cautious, csv_of, loud, moved, tiny

from ppo_jax import Policy, networks
from ppo_jax.backtests import growing, paper, playing
from ppo_jax.backtests.folds import Span
from ppo_jax.component import paths
from ppo_jax.envs.trading import Bars, PriceFile, RandomWalk, Trading
from ppo_jax.errors import UserError
from ppo_jax.host.run_dir import files
from ppo_jax.paper import _told as told
from ppo_jax.ppo import population

FIRST, LAST = 100, 107
BARS = RandomWalk(num_bars=LAST + 1, num_assets=2).bars


@pytest.fixture(scope="module")
def config():
    memory = networks.Gru(size=4)
    network = networks.ActorCritic(networks.Mlp(hidden=(8,)), memory, shared=True)
    numbers = playing.numbers_of(Span(FIRST, LAST)) | {"env.cost": 20.0}
    prices = RandomWalk(num_bars=LAST + 1, num_assets=2)
    config = tiny(prices, network=network)
    return paths.replace(config, numbers | {"env.window": 4})


@pytest.fixture(scope="module")
def learners(config):
    keys = jax.random.split(jax.random.key(0), 1)
    return loud(jax.device_get(population.init(config, keys).runs.learner))


@pytest.fixture(scope="module")
def agent(learners):
    return Policy.of(jax.tree.map(lambda x: x[0], learners))


@pytest.fixture(scope="module")
def follow(config, agent):
    """Decides at what is new in a file of so many bars."""
    market = dataclasses.replace(config.env, window=None)

    def decide(home, bars, count, who=agent):
        (home / "prices.csv").write_text(csv_of(bars, count))
        prices = growing.prices_like(market, home / "prices.csv")
        return paper.follow(who, market, prices, home)

    return decide


@pytest.fixture(scope="module")
def grown(follow, tmp_path_factory):
    """A folder where a bar came after the other, and what was decided at each."""
    home = tmp_path_factory.mktemp("grown")
    books = [follow(home, BARS, count) for count in range(FIRST + 1, LAST + 2)]
    return home, books


def plain(decisions):
    return [{k: v for k, v in each.items() if k != "late"} for each in decisions]


def test_positions_and_equity_are_those_of_the_backtest(config, learners, grown):
    span = Span(FIRST, LAST)
    played = playing.play(playing.through(config, learners, [span]), span.bars)
    decisions = grown[1][-1].decisions
    assert len(decisions) == span.bars + 1 and decisions[0]["equity"] == 1
    assert decisions[0]["positions"] == [0, 0]
    positions = [said["positions"] for said in decisions[1:]]
    held = moved(played.positions[0], BARS, slice(FIRST + 1, LAST + 1))
    np.testing.assert_allclose(positions, held, atol=1e-5)
    equity = np.exp(np.cumsum(played.track.growth[0]))
    found = [said["equity"] for said in decisions[1:]]
    np.testing.assert_allclose(found, equity, rtol=1e-5)
    turnover = [said["turnover"] for said in decisions[1:]]
    np.testing.assert_allclose(turnover, played.track.turnover[0], atol=1e-5)
    assert np.abs(positions).max() > 0.1


def test_who_is_bankrupt_decides_nothing_more(tmp_path):
    """Although the prices of the next bar would make it rich again."""
    days, close = np.arange(60), np.full((60, 1), 100.0)
    close[31] = 240.0  # At the opens before and after, nothing has happened.
    times = np.datetime64("2020-01-01", "ns") + days.astype("timedelta64[D]")
    steady, open_market = np.full((60, 1), 100.0), np.ones((60, 1), bool)
    bars = Bars(times, ("A",), close, steady, open_market)
    (tmp_path / "prices.csv").write_text(csv_of(bars, 60))
    prices = PriceFile(str(tmp_path / "prices.csv"))
    env = Trading(prices, window=4, features=FEATURES, positions=(-1.0, 0.0), cost=0.0)
    config = tiny(env=dataclasses.replace(env, first=28.0, last=60.0))
    runs = population.init(config, jax.random.split(jax.random.key(0), 1)).runs
    short = jax.tree.map(np.zeros_like, runs.learner.params)  # The first of equals.
    learners = runs.learner.replace(params=short)
    agent = Policy.of(jax.tree.map(lambda x: x[0], learners))
    for count in (29, 31, 60, 60):
        (tmp_path / "prices.csv").write_text(csv_of(bars, count))
        found = growing.prices_like(env, tmp_path / "prices.csv")
        book = paper.follow(agent, env, found, tmp_path)
    assert [said["time"][:10] for said in book.decisions] == [
        f"2020-0{month}-{day:02}" for month, day in ((1, 29), (1, 30), (1, 31), (2, 1))
    ]
    assert [said["wanted"] for said in book.decisions] == [*[[-1.0]] * 3, [0.0]]
    equity = np.array([said["equity"] for said in book.decisions])
    interest = env.borrow * 1 / 365  # Of a day; the fall is 2.4 - 1 times the equity.
    np.testing.assert_allclose(equity[:3], 1.0, atol=2.5 * interest)
    assert equity[3] == pytest.approx(-0.4, abs=4 * interest)
    assert paper.is_bankrupt(book.decisions[-1])


def test_what_is_forbidden_is_not_decided(tmp_path):
    """By an agent that would buy all there is."""
    env = cautious()
    learners = population.init(tiny(env=env), jax.random.split(jax.random.key(0), 1))
    learner = jax.tree.map(lambda x: x[0], loud(jax.device_get(learners.runs.learner)))
    (tmp_path / "prices.csv").write_text(csv_of(env.prices.bars, 60))
    prices = growing.prices_like(env, tmp_path / "prices.csv")
    paper.follow(Policy.of(learner), env, prices, tmp_path)
    (tmp_path / "prices.csv").write_text(csv_of(env.prices.bars, 70))
    prices = growing.prices_like(env, tmp_path / "prices.csv")
    book = paper.follow(Policy.of(learner), env, prices, tmp_path)
    wanted = np.array([said["wanted"] for said in book.decisions])
    assert len(wanted) == 11 and wanted.max() <= 0 and wanted.min() < -0.2


def test_a_bar_is_decided_at_once(grown, follow):
    """And what was decided never changes."""
    home, books = grown
    for before, after in itertools.pairwise(books):
        assert after.decisions[:-1] == before.decisions
    text = (home / paper.KEPT).read_text()
    follow(home, BARS, LAST + 1)
    assert (home / paper.KEPT).read_text() == text


def test_bars_that_were_missed_are_caught_up_with(grown, follow, tmp_path):
    """Which is said: their orders were not there in time."""
    follow(tmp_path, BARS, FIRST + 1)
    follow(tmp_path, BARS, FIRST + 2)
    book = follow(tmp_path, BARS, LAST + 1)
    assert plain(book.decisions) == plain(grown[1][-1].decisions)
    late = [said["late"] for said in book.decisions]
    assert late == [False, False, *[True] * (LAST - FIRST - 2), False]
    assert not any(said["late"] for said in grown[1][-1].decisions)


def test_a_book_is_not_written_for_every_bar_that_is_caught_up_with(
    follow, tmp_path, monkeypatch
):
    """A book of many bars is long: once is enough, where it does not take seconds."""
    follow(tmp_path, BARS, FIRST + 1)
    keep, kept = files.write_json, []

    def write(path, value):
        kept.append(value["bar"])
        keep(path, value)

    monkeypatch.setattr(files, "write_json", write)
    for count in (LAST, LAST, LAST + 1):
        follow(tmp_path, BARS, count)
    assert kept == [LAST - 1, LAST]


@pytest.mark.parametrize("written", [False, True])
def test_killed_at_a_bar_it_decides_the_same(
    grown, follow, tmp_path, monkeypatch, written
):
    """Before its decision is kept, or right after it."""
    follow(tmp_path, BARS, FIRST + 1)
    keep, calls = files.write_json, []

    def killed(path, value):
        calls.append(path)
        if written or len(calls) < 5:
            keep(path, value)
        if len(calls) == 5:
            raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(files, "write_json", killed)
        patch.setattr(paper, "KEPT_EVERY", 0.0)
        with pytest.raises(KeyboardInterrupt):
            follow(tmp_path, BARS, LAST + 1)
    kept = json.loads((tmp_path / paper.KEPT).read_text())
    assert kept["bar"] == FIRST + 4 + written
    book = follow(tmp_path, BARS, LAST + 1)
    assert plain(book.decisions) == plain(grown[1][-1].decisions)


def test_an_agent_that_is_broken_goes_on_so(follow, agent, tmp_path):
    """What is not finite is null in the file, and comes back as it was."""
    broken = agent.replace(params=jax.tree.map(lambda x: np.nan * x, agent.params))
    follow(tmp_path, BARS, FIRST + 1, broken)
    book = follow(tmp_path, BARS, FIRST + 2, broken)
    kept = json.loads((tmp_path / paper.KEPT).read_text(), parse_constant=pytest.fail)
    assert kept["bar"] == book.bar == FIRST + 1
    assert kept["decisions"][-1]["wanted"] == [None, None]
    for decisions in (kept["decisions"], book.decisions):
        assert "WALK0     –       –" in told(decisions[-1], BARS.symbols)


def changed(bar, factor):
    close = BARS.close.copy()
    close[bar, 1] *= factor
    return BARS._replace(close=close)


@pytest.mark.parametrize("bar", [0, FIRST, FIRST + 3])
def test_a_past_that_has_changed_is_refused(follow, tmp_path, bar):
    follow(tmp_path, BARS, FIRST + 4)
    text = (tmp_path / paper.KEPT).read_text()
    with pytest.raises(UserError, match="are not those that were decided at"):
        follow(tmp_path, changed(bar, 1.0001), LAST + 1)
    with pytest.raises(UserError, match="are not those that were decided at"):
        follow(tmp_path, BARS, FIRST + 2)  # A file that became shorter.
    assert (tmp_path / paper.KEPT).read_text() == text
    assert follow(tmp_path, changed(FIRST + 4, 1.1), LAST + 1).bar == LAST


def test_another_agent_or_other_assets_are_refused(follow, agent, tmp_path):
    follow(tmp_path, BARS, FIRST + 1)
    other = agent.replace(params=jax.tree.map(lambda x: x + 1, agent.params))
    forgetful = dataclasses.replace(other.architecture, memory=None)
    for another in (other, other.replace(architecture=forgetful)):
        with pytest.raises(UserError, match="another agent decided there"):
            follow(tmp_path, BARS, FIRST + 2, another)
    with pytest.raises(UserError, match="the assets WALK0, WALK1, got A, WALK"):
        follow(tmp_path, BARS._replace(symbols=("A", "WALK0")), FIRST + 2)


@pytest.mark.parametrize(
    "damage",
    [
        {"bar": "100"},
        {"decisions": []},
        {"decisions": [1]},
        {"last": None},
        {"last": [0, 0, 1.0, [0.0], 1.0, [0.0], 0.0, 0.0, [[0.0] * 4], [True], [0.0]]},
    ],
    ids=["bar", "no decision", "no record", "no account", "one asset of two"],
)
def test_a_damaged_book_is_refused(grown, follow, tmp_path, damage):
    kept = json.loads((grown[0] / paper.KEPT).read_text())
    for text in ("{", json.dumps(kept | damage)):
        (tmp_path / paper.KEPT).write_text(text)
        with pytest.raises(UserError, match=r"paper\.json: cannot be read"):
            follow(tmp_path, BARS, LAST + 1)

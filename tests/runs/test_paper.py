"""Paper trading as a user runs it: a file that grows, and a line given again."""

import json
import time

import pytest
from runs import begin, command, session
from traders import csv_of, tiny

from ppo_jax import terms
from ppo_jax.envs.trading import RandomWalk
from ppo_jax.host.agents.trained import Trained
from ppo_jax.host.loop import training

DAYS = (6, 250, 251)


@pytest.fixture(scope="module")
def home(tmp_path_factory):
    """A run that has learned nothing yet, and its prices as they were on some days."""
    home = tmp_path_factory.mktemp("paper")
    config = tiny(terms=(terms.Surrogate(), terms.Value()))  # Parts of files alone.
    Trained(config, training.start(config), 0).save(home / "run")
    bars = config.env.prices.bars
    for count in DAYS:
        (home / f"{count}.csv").write_text(csv_of(bars, count))
    (home / "other.csv").write_text(csv_of(bars._replace(symbols=("A", "B")), 250))
    text = (home / "251.csv").read_text().splitlines(keepends=True)
    (home / "past.csv").write_text("".join(text[:1] + text[3:]))
    return home


def test_each_bar_is_decided_at_once_and_mistakes_are_told(home):
    lines = [
        "run 250.csv --to a",
        "run 251.csv --to a",
        "run 251.csv --to a",
        "run 250.csv --to a",
        "run past.csv --to a",
        "run other.csv --to b",
        "run nowhere.csv --to b",
        "run 6.csv --to b",
        "nowhere 250.csv",
        "run 250.csv --member 3",
    ]
    told = session((["paper", *line.split()] for line in lines), home)
    for status, text in told[:3]:
        assert status == 0, text
    assert "close of " in told[0][1] and "WALK1" in told[0][1]
    assert told[1] == told[2] and told[0] != told[1]
    mistakes = [
        "are not those that were decided at",
        "are not those that were decided at",
        "expected the assets WALK0, WALK1, got A, B",
        "nowhere.csv: no such file",
        "Trading.prices: expected more than 6 bars: features look back for 5, got",
        "nowhere: no run to be found there",
        "--member: expected 0 to 0, got 3",
    ]
    for words, (status, text) in zip(mistakes, told[3:], strict=True):
        assert status == 2 and words in text and "Traceback" not in text, text
    decisions = json.loads((home / "a" / "paper.json").read_text())["decisions"]
    bars = tiny().env.prices.bars
    days = [str(bars.times[bar])[:19] for bar in (249, 250)]
    assert [each["time"] for each in decisions] == days
    assert not (home / "b" / "paper.json").exists()


@pytest.mark.slow
def test_killed_between_bars_it_goes_on_as_if_it_had_not_been(home):
    """While it catches up with so many that some are kept before the last one."""
    bars = RandomWalk(num_bars=900, num_assets=2).bars
    for name, count in (("begun", 250), ("long", 900)):
        (home / f"{name}.csv").write_text(csv_of(bars, count))
    first = command("paper", "run", "begun.csv", "--to", "whole", cwd=home)
    assert first.returncode == 0
    (home / "killed").mkdir()
    kept = (home / "whole" / "paper.json").read_text()
    (home / "killed" / "paper.json").write_text(kept)
    line = ("paper", home / "run", home / "long.csv", "--to", home / "killed")
    process, deadline = begin(*line), time.monotonic() + 120
    while (home / "killed" / "paper.json").read_text() == kept:
        assert time.monotonic() < deadline and process.poll() is None
        time.sleep(0.005)
    process.kill()
    process.communicate()
    at = json.loads((home / "killed" / "paper.json").read_text())["bar"]
    assert 249 < at < 899
    assert command(*line).returncode == 0
    again = command("paper", "run", "long.csv", "--to", "whole", cwd=home)
    assert again.returncode == 0
    whole, killed = (home / x / "paper.json" for x in ("whole", "killed"))
    assert whole.read_text() == killed.read_text()

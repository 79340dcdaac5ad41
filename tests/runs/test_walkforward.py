"""Walk-forwards as a user runs them: tables, curves, kills, and prices that change."""

import csv
import json
import shutil
import time

import numpy as np
import pytest
import traders
from reported import parsed, said, unnamed
from runs import EXPERIMENT, begin, command, session
from traders import planned, tiny

from ppo_jax.backtests import measures, walking
from ppo_jax.envs.trading import Prices
from ppo_jax.envs.trading.causality import changed_after
from ppo_jax.host.console import QUIET

SHAPE = ["--folds", "2", "--train", "100", "--validation", "30", "--embargo", "3"]
ASKED = [*SHAPE, "--seeds", 2, "--grid", "env.cost=5,20"]


@pytest.fixture(scope="module")
def home(tmp_path_factory):
    """Where there are experiments, and a walk-forward of one that nothing disturbed."""
    home = tmp_path_factory.mktemp("walks")
    shutil.copy(traders.__file__, home)
    (home / "mine.py").write_text(traders.TEXT)
    (home / "other.py").write_text(EXPERIMENT.format(memory=""))
    line = ["walkforward", "mine.py", "--run-dir", "walk", *ASKED]
    ((status, text),) = session([line], home)
    assert status == 0, text
    (home / "said").write_text(text)
    return home


@pytest.fixture(scope="module")
def found(home):
    return json.loads((home / "walk" / "backtest.json").read_text())


def kept(run_dir):
    """What its agents came to, batch after batch."""
    homes = sorted(run_dir.glob("batches/*"))
    return [walking.kept(home) for home in homes]


def test_all_agents_are_one_program(home):
    text = (home / "said").read_text()
    assert "16 agents: 4 settings x 2 folds x 2 seeds, programs to compile: 1" in text
    assert "batch 1 of 1, 16 agents" in text
    assert "8 trials in walk/backtest.json" in text


def test_tracks_are_the_tests_one_after_the_other(home, found):
    (tracks,) = kept(home / "walk")
    assert found["bars"] == 2 * tracks.growth.shape[1]
    first = tracks.growth[(tracks.place == [1, 0, 1]).all(axis=1)][0]
    second = tracks.growth[(tracks.place == [1, 1, 1]).all(axis=1)][0]
    whole = np.expm1(np.concatenate([first, second]).astype(np.float64))
    agents = found["agents"][1]
    assert agents["name"] == "env.cost=5 terms.cvar.coef=0" and agents["cost"] == 5
    for name, measure in (
        ("CAGR", measures.cagr),
        ("max drawdown", measures.max_drawdown),
        ("CVaR 5 %", measures.cvar),
    ):
        figure = agents["figures"][name]["each"]
        assert figure[1] == pytest.approx(float(measure(whole)), rel=1e-6)


def test_baselines_pay_what_agents_pay(found):
    names = ["buy & hold", "cash", "volatility 10 %", "momentum 12-1"]
    given = [(each["name"], each["cost"]) for each in found["baselines"]]
    assert given == [(name, cost) for cost in (5.0, 20.0) for name in names]
    growth = {
        (each["name"], each["cost"]): each["figures"]["CAGR"]["median"]
        for each in found["baselines"]
    }
    for name in set(names) - {"cash"}:
        assert growth[name, 5.0] > growth[name, 20.0]
    assert growth["cash", 5.0] == 0


def test_equity_is_a_column_per_track(home, found):
    with (home / "walk" / "equity.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == found["bars"] and len(rows[0]) == 1 + 8 + 8
    last = rows[-1]["buy & hold, 5 bp"]
    growth = found["baselines"][0]["figures"]["CAGR"]["each"][0]
    assert float(last) == pytest.approx((1 + growth) ** (len(rows) / 252), rel=1e-6)
    days = [row["time"][:10] for row in (rows[0], rows[-1])]
    assert found["folds"][0]["test"][0] < days[0]
    assert found["folds"][-1]["test"][1] == days[1]


def test_the_page_says_it_all_in_one_file(home, found):
    text = said(parsed((home / "walk" / "backtest.html").read_text()))
    for words in (
        *("Measures", "Curves", "Luck", "Frontier", "Folds", "Calibration"),
        *("buy & hold", "momentum 12-1", "terms.cvar.coef=0", "8 trials"),
        "RandomWalk: without drift, nothing can be earned, but by chance.",
        "Made by python -m ppo_jax.walkforward.",
    ):
        assert words in text, words
    for fold in found["folds"]:
        assert " – ".join(fold["test"]) in text
    assert "survivors" not in text and "delisted" not in text


def test_every_file_of_a_walk_forward_is_in_the_document(home):
    assert unnamed(home / "walk", "A walk-forward") == set()


MISTAKES = {
    "other.py": "Config.env: expected a Trading to walk in, got",
    "mine.py --folds 90": "--folds: expected at most ",
    "mine.py --folds 0": "--folds: expected at least 1, got 0",
    "mine.py --validation 30 --purge 31": "--purge: expected 0 to 30",
    "mine.py --seeds 0": "--seeds: expected at least 1, got 0",
    "mine.py --memory 0": "--memory: expected a number of MiB > 0",
    "mine.py --grid env.first=1": "env.first: folds set it",
    "mine.py --grid env.cots=1": "env.cots",
    "mine.py --resume": "--resume: expected --run-dir as well",
    "mine.py --run-dir walk": "walk: holds a run already",
    "mine.py --run-dir walk --resume --seeds 9": "goes on as it was asked for",
    "nowhere.py": "no such experiment file",
    "mine.py --train 10 --validation 10": "Trading.last: expected first",
}


@pytest.fixture(scope="module")
def told(home):
    """What a finished walk-forward says if it is to go on, and what mistakes do."""
    lines = [["walkforward", "mine.py", "--run-dir", "walk", "--resume"]]
    for path, *rest in map(str.split, MISTAKES):
        shape = [] if "--resume" in rest else SHAPE
        lines.append(["walkforward", path, *shape, *rest])
    return session(lines, home)


def test_what_is_there_is_not_trained_again(home, found, told):
    status, text = told[0]
    assert status == 0 and "batch" not in text, text
    assert json.loads((home / "walk" / "backtest.json").read_text()) == found


def test_mistakes_are_told(home, told):
    for (line, words), (status, text) in zip(MISTAKES.items(), told[1:], strict=True):
        assert status == 2 and words in text, (line, text)
        assert "Traceback" not in text and text.startswith("error: "), text
    assert not (home / "runs").exists()


@pytest.mark.slow
def test_killed_a_walk_forward_ends_the_same(home, found, tmp_path):
    """In its training; then after it, where what was selected is still to be tested."""
    broken = tmp_path / "broken"
    process = begin("walkforward", home / "mine.py", "--run-dir", broken, *ASKED)
    deadline = time.monotonic() + 180
    while not list(broken.glob("batches/001/checkpoints/[0-9]*")):
        assert time.monotonic() < deadline and process.poll() is None
        time.sleep(0.005)
    process.kill()
    process.communicate()
    assert not (broken / "backtest.json").exists()
    line = ("walkforward", home / "mine.py", "--run-dir", broken, "--resume")
    again = command(*line)
    assert again.returncode == 0, again.stderr
    assert json.loads((broken / "backtest.json").read_text()) == found
    (broken / "batches" / "001" / "tracks.npz").unlink()
    again = command(*line)
    assert again.returncode == 0 and "batch 1 of 1" in again.stdout, again.stderr
    assert json.loads((broken / "backtest.json").read_text()) == found


class Rewritten(Prices):
    """Prices that are others after a bar."""

    bar = 0

    def load(self):
        whole = tiny().env.prices.bars
        return changed_after(whole, self.bar) if self.bar else whole


@pytest.mark.slow
def test_what_is_tested_on_changes_nothing_before(tmp_path):
    """No parameter, no statistic of observations, no choice of a checkpoint.

    A fold alone: the close at which its validation ends is the last that is the same.
    """
    fold = planned(tiny(), folds=1).folds[0]
    last = type("Later", (Rewritten,), {"bar": fold.validation.last})
    earlier = type("Earlier", (Rewritten,), {"bar": fold.validation.last - 1})
    stored, tracks = [], []
    for name, kind in (("same", Rewritten), ("later", last), ("earlier", earlier)):
        plan = planned(tiny(kind()), folds=1)
        list(walking.walk(plan, [4], tmp_path / name, "", QUIET))
        tracks += kept(tmp_path / name)
        with np.load(tmp_path / name / "batches/001/selected.npz") as file:
            stored.append(dict(file))
    same, later, earlier = stored
    for name, leaf in same.items():
        np.testing.assert_array_equal(leaf, later[name], name)
    assert not np.array_equal(tracks[0].growth, tracks[1].growth)
    assert not np.array_equal(same["scores"], earlier["scores"])

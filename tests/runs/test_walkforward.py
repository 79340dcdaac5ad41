"""Walk-forwards as a user runs them: tables, curves, kills, and prices that change."""

import csv
import functools
import json
import math
import shutil
import time

import numpy as np
import pytest
import traders
from reported import parsed, said, unnamed
from runs import ALIKE, EXPERIMENT, begin, called, command, session
from traders import planned, tiny

from ppo_jax.backtests import deflation, measures, walking
from ppo_jax.envs.trading import Prices
from ppo_jax.envs.trading.causality import changed_after
from ppo_jax.host.process.console import QUIET, Console
from ppo_jax.host.run_dir import files
from ppo_jax.sweeps import cohorts

SHAPE = ["--folds", "2", "--train", "100", "--validation", "30", "--embargo", "3"]
ASKED = [*SHAPE, "--seeds", 2, "--grid", "env.cost=5,20"]
PAIRED = [*SHAPE, "--seeds", 2, "--trials", 96]
BRIEF = [*SHAPE, "--seeds", 4]
HALF = [*SHAPE, "--seeds", 2, "--grid", "terms.weighed.factor=1.0,float('nan')"]


@pytest.fixture(scope="module")
def home(tmp_path_factory):
    """Where there are experiments, and a walk-forward of one that nothing disturbed."""
    home = tmp_path_factory.mktemp("walks")
    shutil.copy(traders.__file__, home)
    (home / "mine.py").write_text(traders.TEXT)
    (home / "pairs.py").write_text(traders.POPULATIONS)
    (home / "broken.py").write_text(traders.BROKEN)
    (home / "other.py").write_text(EXPERIMENT.format(memory=""))
    lines = [
        ["walkforward", "mine.py", "--run-dir", "walk", *ASKED],
        ["walkforward", "pairs.py", "--run-dir", "pairs", *PAIRED],
        ["walkforward", "broken.py", "--run-dir", "broken", *BRIEF],
        ["walkforward", "broken.py", "--run-dir", "half", *HALF],
    ]
    names = "mine", "pairs", "broken", "half"
    for name, (status, text) in zip(names, session(lines, home), strict=True):
        assert status == 0, text
        (home / f"{name}.txt").write_text(text)
    return home


@pytest.fixture(scope="module")
def found(home):
    return json.loads((home / "walk" / "backtest.json").read_text())


def kept(run_dir):
    """What its agents came to, batch after batch."""
    homes = sorted(run_dir.glob("batches/*"))
    return [walking.kept(home) for home in homes]


def test_all_agents_are_one_program(home):
    text = (home / "mine.txt").read_text()
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
        *("A year is 252 bars.", "in blocks of 20 on average"),
        "Made by python -m ppo_jax.walkforward.",
    ):
        assert words in text, words
    for fold in found["folds"]:
        assert " – ".join(fold["test"]) in text
    assert "survivors" not in text and "delisted" not in text


def test_every_file_of_a_walk_forward_is_in_the_document(home):
    assert unnamed(home / "walk", "A walk-forward") == set()


@pytest.fixture(scope="module")
def populations(home):
    """A batch of a walk-forward whose agents are the better ones of two each."""
    return home / "pairs" / "batches" / "001"


def generations(batch):
    """Updates, and what became of members then, `[agents, 2]`."""
    for line in files.rows(batch / "generations.jsonl"):
        rates = line["numbers"]["optimizer.learning_rate"]
        leaves = line["fitness"], line["parent"], line["copied"], rates
        yield line["update"], *(np.reshape(leaf, (-1, 2)) for leaf in leaves)


def test_all_populations_are_one_program(home):
    text = (home / "pairs.txt").read_text()
    said = "8 agents: 2 settings x 2 folds x 2 seeds, the best of 2 each, programs to "
    assert said + "compile: 1" in text


def test_populations_evolve_within_their_fold_seed_and_setting(populations):
    """In every pair the worse one copies the other, and its number moves by a step."""
    (start, *_, rates), *later = generations(populations)
    assert start == 0 and [update for update, *_ in later] == [2, 4]
    first, second = 2 * np.arange(8), 2 * np.arange(8) + 1
    for _, fitness, parent, copied, moved in later:
        better = fitness.argmax(axis=1)
        assert (fitness[:, 0] != fitness[:, 1]).all()
        assert np.array_equal(copied, fitness < fitness.max(axis=1, keepdims=True))
        assert np.array_equal(parent, np.stack([first + better] * 2, axis=1))
        assert (parent >= first[:, None]).all() and (parent <= second[:, None]).all()
        kept = np.take_along_axis(rates, better[:, None], axis=1)
        step = np.abs(np.log(moved / kept))
        wanted = np.where(copied, np.log(1.5), 0.0)
        inside = (moved > 1.01e-4) & (moved < 0.99e-1)
        np.testing.assert_allclose(step[inside], wanted[inside], atol=1e-5)
        assert inside[copied].sum() > 4
        rates = moved


def test_populations_of_a_seed_begin_alike(populations):
    """Whatever the fold and the setting; those of other seeds do not."""
    _, _, _, _, rates = next(generations(populations))
    assert len(np.unique(rates)) == 4
    (tracks,) = kept(populations.parents[1])
    for seed in (0, 1):
        assert len(np.unique(rates[tracks.place[:, 2] == seed], axis=0)) == 1


def test_an_agent_is_the_best_of_its_population(populations):
    """By its validation, which is the fitness of generations as well."""
    (tracks,) = kept(populations.parents[1])
    with np.load(populations / "selected.npz") as stored:
        scores, updates = (stored[x].reshape(-1, 2) for x in ("scores", "updates"))
    np.testing.assert_array_equal(tracks.validated, scores.max(axis=1) / 30)
    seen = np.stack([fitness for _, fitness, *_ in list(generations(populations))[1:]])
    assert (scores >= seen.max(axis=0) - 1e-7).all()
    assert (updates < 6).any()
    for fitness, update in zip(seen, (2, 4), strict=True):
        then = updates == update
        np.testing.assert_allclose(scores[then], fitness[then], rtol=1e-6)
    assert (scores.argmax(axis=1) == 0).any() and (scores.argmax(axis=1) == 1).any()


def test_trials_made_elsewhere_count(home, found):
    """The more there were, the likelier the best of them is luck.

    They are taken to differ as much as these do, or as luck alone would make them.
    """
    pairs = json.loads((home / "pairs" / "backtest.json").read_text())
    assert (found["before"], pairs["before"], pairs["trials"]) == (0, 96, 100)
    assert "100 trials in pairs/backtest.json" in (home / "pairs.txt").read_text()
    text = said(parsed((home / "pairs" / "backtest.html").read_text()))
    assert "100 trials, 96 of them elsewhere." in text
    (tracks,) = kept(home / "pairs")
    order = np.lexsort(tracks.place.T[[1, 2, 0]])
    returns = np.expm1(tracks.growth[order].reshape(4, -1).astype(np.float64))
    here = measures.sharpe(returns, bars=1)
    luck = 1 / math.sqrt(returns.shape[1] - 1)
    above = deflation.hurdle(100, max(here.std(ddof=1), luck))
    for number, track in enumerate(returns):
        normed = (track - track.mean()) / track.std()
        skew, kurtosis = (float((normed**power).mean()) for power in (3, 4))
        expected = deflation.probability(
            here[number], above, len(track), skew, kurtosis
        )
        setting, seed = divmod(number, 2)
        told = pairs["agents"][setting]["deflated"][seed]
        assert told == pytest.approx(expected, rel=1e-6)


def test_agents_whose_training_failed_are_said(home, found):
    """Before they were looked at for the first time; they are tested all the same."""
    text, broken = (home / "broken.txt").read_text(), home / "broken"
    why = "this batch failed: 2 updates in a row had no finite optimiser step"
    words = "The training of 16 of 16 agents failed: no step was finite any more."
    assert why in text and words in text
    for agents in json.loads((broken / "backtest.json").read_text())["agents"]:
        assert agents["failed"] == [[True] * 2] * 4
        assert agents["updates"] == [[2] * 2] * 4
    assert words in said(parsed((broken / "backtest.html").read_text()))
    assert not any(np.any(each["failed"]) for each in found["agents"])
    assert "failed" not in (home / "mine.txt").read_text()


def test_agents_fail_beside_others_that_do_not(home):
    """Those of one setting, though their batch went on to its end."""
    text = (home / "half.txt").read_text()
    found = json.loads((home / "half" / "backtest.json").read_text())["agents"]
    whole, broken = np.split(np.array([agents["failed"] for agents in found]), 2)
    assert broken.all() and not whole.any()
    count = broken.size
    assert f"The training of {count} of {2 * count} agents failed" in text
    assert "this batch failed" not in text


MISTAKES = {
    "other.py": "Config.env: expected a Trading to walk in, got",
    "mine.py --folds 90": "--folds: expected at most ",
    "mine.py --folds 0": "--folds: expected at least 1, got 0",
    "mine.py --validation 30 --purge 31": "--purge: expected 0 to 30",
    "mine.py --seeds 0": "--seeds: expected at least 1, got 0",
    "mine.py --trials -1": "--trials: expected at least 0, got -1",
    "mine.py --memory 0": "--memory: expected a number of MiB > 0",
    "mine.py --grid env.first=1": "env.first: folds set it",
    "pairs.py --grid optimizer.learning_rate=1,2": "pbt.space: optimizer.learning_ra",
    "mine.py --grid env.cots=1": "env.cots",
    "mine.py --max-seconds 60": "Config.max_seconds: expected None, as agents are",
    "mine.py --resume": "--resume: expected --run-dir as well",
    "mine.py --run-dir walk": "walk: holds a run already",
    "mine.py --run-dir walk --resume --seeds 9": "goes on as it was asked for",
    "mine.py --run-dir walk --resume --memory 80": "asked for; give --memory to anot",
    "nowhere.py": "no such experiment file",
    "mine.py --train 10 --validation 10": "--train: expected at least 16",
}


@pytest.fixture(scope="module")
def told(home):
    """What a finished walk-forward says if it is to go on, and what mistakes do."""
    lines = [["walkforward", "mine.py", "--run-dir", "walk", "--resume"]]
    lines += [["report", "walk"], ["report", "walk", "pairs"], ["runs", "walk"]]
    for path, *rest in map(str.split, MISTAKES):
        shape = [] if "--resume" in rest else SHAPE
        lines.append(["walkforward", path, *shape, *rest])
    return session(lines, home)


def test_what_is_there_is_not_trained_again(home, found, told):
    status, text = told[0]
    assert status == 0 and "batch" not in text, text
    assert json.loads((home / "walk" / "backtest.json").read_text()) == found


def test_other_commands_say_what_it_is(told):
    """A report points to the page that there is; a list has it and its batches."""
    page = "a walk-forward, which leaves a page of its own: walk/backtest.html"
    for status, text in told[1:3]:
        assert status == 2 and text == f"error: walk: is {page}\n"
    status, text = told[3]
    rows = [line.split()[:2] for line in text.splitlines()[1:]]
    assert status == 0
    assert rows == [["walk", "finished"], ["walk/batches/001", "finished"]]


def test_mistakes_are_told(home, told):
    for (line, words), (status, text) in zip(MISTAKES.items(), told[4:], strict=True):
        assert status == 2 and words in text, (line, text)
        assert "Traceback" not in text and text.startswith("error: "), text
    assert not (home / "runs").exists()


def test_killed_while_it_compiles_it_is_a_walk_forward(home, tmp_path, monkeypatch):
    """And has what it was asked for, to go on with."""

    def killed(members, room):
        raise KeyboardInterrupt

    monkeypatch.setattr(cohorts, "largest_batch", killed)
    walk = tmp_path / "walk"
    line = ("walkforward", home / "mine.py", "--run-dir", walk)
    assert called(*line, *ASKED, "--memory", 4000).returncode == 130
    asked = json.loads((walk / "walk.json").read_text())
    assert (asked["memory"], asked["sizes"], asked["seeds"]) == (4000, [], 2)
    assert f"python -m ppo_jax.walkforward {walk}" in called("runs", walk).stdout
    assert called(*line, "--resume").returncode == 130


def test_names_of_a_grid_keep_their_values(home, tmp_path, monkeypatch):
    """Others are refused before anything is trained."""

    def killed(members, room):
        raise KeyboardInterrupt

    monkeypatch.setattr(cohorts, "largest_batch", killed)
    named, text = tmp_path / "named.py", (home / "mine.py").read_text()
    line = ("walkforward", named, "--run-dir", tmp_path / "walk")
    named.write_text(text + "low = 1.0\n")
    assert called(*line, *SHAPE, "--grid", "env.cost=low,20").returncode == 130
    named.write_text(text + "low = 3.0\n")
    done = called(*line, "--resume")
    assert done.returncode == 2, done.stderr
    assert "  setting 0: env.cost: 1.0 -> 3.0\n" in done.stderr


@pytest.mark.slow
@pytest.mark.parametrize("name", ["mine.py", "pairs.py"])
def test_killed_a_walk_forward_ends_the_same(name, home, tmp_path):
    """In its training; then after it, where what was selected is still to be tested."""
    broken = tmp_path / "broken"
    asked = ASKED if name == "mine.py" else PAIRED
    whole = home / ("walk" if name == "mine.py" else "pairs")
    found = json.loads((whole / "backtest.json").read_text())
    line = ("walkforward", home / name, "--run-dir", broken)
    process = begin(*line, *asked, environment=ALIKE)
    deadline = time.monotonic() + 180
    while not list(broken.glob("batches/001/checkpoints/[0-9]*")):
        assert time.monotonic() < deadline and process.poll() is None
        time.sleep(0.005)
    process.kill()
    process.communicate()
    assert not (broken / "backtest.json").exists()
    again = command(*line, "--resume", environment=ALIKE)
    assert again.returncode == 0, again.stderr
    assert json.loads((broken / "backtest.json").read_text()) == found
    (broken / "batches" / "001" / "tracks.npz").unlink()
    again = command(*line, "--resume", environment=ALIKE)
    assert again.returncode == 0 and "batch 1 of 1" in again.stdout, again.stderr
    assert json.loads((broken / "backtest.json").read_text()) == found
    if name == "pairs.py":
        place = "batches/001/generations.jsonl"
        assert (broken / place).read_text() == (whole / place).read_text()


class Rewritten(Prices):
    """Prices that are others after a bar."""

    bar = 0

    def load(self):
        whole = tiny().env.prices.bars
        return changed_after(whole, self.bar) if self.bar else whole


@pytest.mark.slow
@pytest.mark.parametrize("pbt", [None, traders.PAIRS])
def test_what_is_tested_on_changes_nothing_before(pbt, tmp_path):
    """No parameter, no statistic of observations, no choice, and no generation.

    A fold alone: the close at which its validation ends is the last that is the same.
    """
    fold = planned(tiny(pbt=pbt), folds=1).folds[0]
    last = type("Later", (Rewritten,), {"bar": fold.validation.last})
    earlier = type("Earlier", (Rewritten,), {"bar": fold.validation.last - 1})
    stored, tracks, quiet = [], [], functools.partial(Console, QUIET)
    for name, kind in (("same", Rewritten), ("later", last), ("earlier", earlier)):
        plan = planned(tiny(kind(), pbt=pbt), folds=1)
        list(walking.walk(plan, [4], tmp_path / name, "", quiet))
        tracks += kept(tmp_path / name)
        with np.load(tmp_path / name / "batches/001/selected.npz") as file:
            stored.append(dict(file))
    same, later, earlier = stored
    for name, leaf in same.items():
        np.testing.assert_array_equal(leaf, later[name], name)
    assert not np.array_equal(tracks[0].growth, tracks[1].growth)
    assert not np.array_equal(same["scores"], earlier["scores"])
    if pbt:
        same, later, earlier = (
            (tmp_path / name / "batches/001/generations.jsonl").read_text()
            for name in ("same", "later", "earlier")
        )
        assert same == later and same != earlier

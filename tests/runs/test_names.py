"""Items of tuples have the names of their kinds, wherever a path of a number is.

Versions before this one wrote their indices: `terms.2.coef` for what is, in the
experiments here, `terms.entropy.coef`. What is left of such a run is understood, and
goes on with the names of now.
"""

import json
import re
import shutil
from pathlib import Path

import pytest
from runs import SIZES, called, restored

from ppo_jax.attacks.opponents import OPPONENTS
from ppo_jax.component import component, numbers, replace_at
from ppo_jax.host.agents import curves

STORED = Path(__file__).parent / "stored" / "population"
FORMER = re.compile(r"(?<![\w.])terms\.\d")
OWN = (
    SIZES
    + """
from ppo_jax.envs.probes import TimeLimitChain

@component
class MyOwnBonus(terms.Entropy):
    weight: float = 2.0

    def prepare(self, memory, rollout: terms.RolloutTargets):
        return (), {}

objective = (terms.Surrogate(), terms.Entropy(), MyOwnBonus(), terms.Entropy(0.002))
config = Config(env=TimeLimitChain(limit=5), terms=objective, **SIZES)
"""
)


def lines(run_dir, name):
    return [json.loads(line) for line in (run_dir / name).read_text().splitlines()]


def said(line):
    """All that a command says that succeeds."""
    done = called(*line)
    text = done.stdout + done.stderr
    assert done.returncode == 0, text
    return text


def as_now(text):
    """The rule, by hand, for experiments with the terms of the default."""
    for index, kind in enumerate(("surrogate", "value", "entropy")):
        text = text.replace(f"terms.{index}.", f"terms.{kind}.")
    return text


def as_before(run_dir):
    """Writes the files of a run as versions before wrote them."""
    for name in ("config.json", "overrides.json", "schedule.json", "sweep.json"):
        if (run_dir / name).exists():
            text = (run_dir / name).read_text()
            for index, kind in enumerate(("surrogate", "value", "entropy")):
                text = text.replace(f"terms.{kind}.", f"terms.{index}.")
            (run_dir / name).write_text(text)
    described = json.loads((run_dir / "config.json").read_text())
    del described["terms"]
    (run_dir / "config.json").write_text(json.dumps(described))


@component
class CVaRTail:
    weight: float = 0.25


@component
class KL:
    tails: tuple[CVaRTail, ...] = (CVaRTail(), CVaRTail(0.5))
    scale: float = 1.0


@component
class Sum:
    parts: tuple[KL | CVaRTail, ...] = (CVaRTail(0.75), KL(), CVaRTail(1.0))


def test_paths_are_of_kinds():
    """In any component, at any depth, and in the order of the items."""
    assert [*numbers(Sum()).items()] == [
        ("parts.cvar_tail.weight", 0.75),
        ("parts.kl.tails.cvar_tail.weight", 0.25),
        ("parts.kl.tails.cvar_tail_2.weight", 0.5),
        ("parts.kl.scale", 1.0),
        ("parts.cvar_tail_2.weight", 1.0),
    ]
    changed = replace_at(Sum(), "parts.kl.tails.cvar_tail_2.weight", 8.0)
    assert changed.parts[1].tails == (CVaRTail(), CVaRTail(8.0))
    refused = "parts.1.tails.0.weight: parts are addressed by their kind; this one is "
    with pytest.raises(KeyError, match=f"{refused}parts.kl.tails.cvar_tail.weight"):
        replace_at(Sum(), "parts.1.tails.0.weight", 8.0)


@pytest.fixture(scope="module")
def own(tmp_path_factory):
    """An experiment with a class of its author's own, and a run of it with options."""
    home = tmp_path_factory.mktemp("own")
    path, run_dir = home / "own.py", home / "run"
    path.write_text(OWN)
    options = ["--terms.entropy-2.coef", "0.25", "--terms.my-own-bonus.weight", "0.5"]
    said(["train", path, "--run-dir", run_dir, *options])
    return path, run_dir


def test_a_second_of_a_kind_and_a_class_of_ones_own_have_options(own):
    """Which are in the help, and change what they name and nothing else."""
    path, run_dir = own
    helped = said(["train", path, "--help"])
    assert not FORMER.search(helped)
    for option in ("surrogate.clip-eps", "entropy.coef", "entropy-2.coef"):
        assert f"--terms.{option} FLOAT" in helped
    told = json.loads((run_dir / "config.json").read_text())
    assert {path: x["value"] for path, x in told.items() if "terms" in path} == {
        "terms": "surrogate, entropy, my_own_bonus, entropy_2",
        "terms.surrogate.type": "Surrogate",
        "terms.surrogate.clip_eps": "0.2",
        "terms.surrogate.clip_schedule.type": "Constant",
        "terms.surrogate.dual_clip": "None",
        "terms.entropy.type": "Entropy",
        "terms.entropy.coef": "0.01",
        "terms.my_own_bonus.type": "MyOwnBonus",
        "terms.my_own_bonus.coef": "0.01",
        "terms.my_own_bonus.weight": "0.5",
        "terms.entropy_2.type": "Entropy",
        "terms.entropy_2.coef": "0.25",
    }
    wrong = called("train", path, "--terms.3.coef", "0.25")
    expected = "terms are addressed by their kind; this one is --terms.entropy-2.coef\n"
    assert (wrong.returncode, wrong.stdout) == (2, "")
    assert wrong.stderr == f"error: --terms.3.coef: {expected}"


@pytest.fixture(scope="module")
def resumed(tmp_path_factory):
    """A former run, gone on with by its author's own file and options of then."""
    home = tmp_path_factory.mktemp("former")
    run_dir = shutil.copytree(STORED, home / "run")
    mine = shutil.copy(STORED / "experiment.py", home / "mine.py")
    options = ["--terms.1.coef", "0.5", "--terms.0.clip-eps=0.25"]
    (run_dir / "overrides.json").write_text(json.dumps(options))
    done = called("train", mine, "--run-dir", run_dir, "--resume")
    assert done.returncode == 0, done.stderr
    return run_dir, done


def test_a_former_run_goes_on_with_the_names_of_now(resumed):
    """PROP-18.1: in all that it writes, also of what was written before."""
    run_dir, done = resumed
    assert "resuming with another terms.surrogate.clip_eps: 0.2 -> 0.25" in done.stdout
    assert "resuming with another devices_per_member: 1 -> None" in done.stdout
    assert done.stdout.count("resuming with another") == 2 and done.stderr == ""
    names = ("lineage.jsonl", "metrics.jsonl", "overrides.json", "config.json")
    for name in names:
        assert not FORMER.search((run_dir / name).read_text()), name
    for name in ("lineage.jsonl", "metrics.jsonl"):
        then = [json.loads(as_now(json.dumps(x))) for x in lines(STORED, name)]
        assert lines(run_dir, name)[:-1] == then[:-1]
    searched = {"gamma", "optimizer.learning_rate", "terms.entropy.coef"}
    generations = lines(run_dir, "lineage.jsonl")
    assert len(generations) == 5
    assert all({*line["numbers"]} == searched for line in generations)
    for row in lines(run_dir, "metrics.jsonl"):
        assert "pbt/terms.entropy.coef/3" in row
    _, population, meta = restored(run_dir)
    assert meta["lineage"] == generations
    assert "terms.entropy.coef" in meta["config"]
    held = population.runs.learner.config.terms[2].coef
    assert held.tolist() == generations[-1]["numbers"]["terms.entropy.coef"]


def test_a_class_that_was_called_otherwise_is_found(own, tmp_path):
    """By what is kept of a run; whoever writes it anew is told what there is."""
    former = OWN.replace("terms.RolloutTargets", "terms.Rollout")
    (tmp_path / "former.py").write_text(former)
    run_dir = shutil.copytree(own[1], tmp_path / "run")
    (run_dir / "experiment.py").write_text(former)
    more = ("--total-timesteps", 32 * 3)
    said(["train", run_dir / "experiment.py", "--run-dir", run_dir, "--resume", *more])
    refused = called("train", tmp_path / "former.py")
    assert refused.returncode == 2 and "RolloutTargets" in refused.stderr


def test_once_more_by_either_file(resumed, tmp_path):
    """A run that has gone on is the author's to go on with, in the same words."""
    again = shutil.copytree(resumed[0], tmp_path / "run")
    mine = resumed[0].parent / "mine.py"
    budget = ("--total-timesteps", 320, "--terms.value.coef", 0.25)
    options = ("--run-dir", again, "--resume")
    for path in (mine, again / "experiment.py"):
        done = called("train", path, *options, *budget)
        assert done.returncode == 0, done.stderr
    assert len(lines(again, "lineage.jsonl")) == 6
    wrong = called("train", mine, *options, "--terms.2.coef", 0.5)
    expected = "terms are addressed by their kind; this one is --terms.entropy.coef\n"
    assert (wrong.returncode, wrong.stderr) == (2, f"error: --terms.2.coef: {expected}")


@pytest.fixture(scope="module")
def replayed(tmp_path_factory):
    """Where a former run is, its replay, and what that said."""
    home = tmp_path_factory.mktemp("replayed")
    run_dir = shutil.copytree(STORED, home / "run")
    return home, said(["replay", run_dir, "--to", home / "replayed"])


def test_a_former_run_is_read_and_left_as_it_is(replayed, monkeypatch):
    """Evaluated, attacked, drawn and replayed."""
    home, text = replayed
    monkeypatch.chdir(home)
    monkeypatch.setattr(curves, "OPPONENTS", {"random": OPPONENTS["random"]})
    few = ["--episodes", 4]
    asked = [
        ["evaluate", "run", *few],
        ["robustness", "run", *few, "--eps", 0.1, "--out", "attacked"],
        ["report", "run", "--out", "run.html"],
    ]
    for line in asked:
        assert not FORMER.search(said(line))
    page = (home / "run.html").read_text()
    assert "terms.entropy.coef" in page and not FORMER.search(page + text)
    schedule = json.loads((home / "replayed" / "schedule.json").read_text())
    assert [update for update, _ in schedule] == [0, 2, 4, 6]
    assert all("terms.entropy.coef" in given for _, given in schedule)
    for path in STORED.rglob("*"):
        if path.is_file():
            there = home / "run" / path.relative_to(STORED)
            assert there.read_bytes() == path.read_bytes()


def test_a_former_replay_and_a_former_sweep_go_on(replayed, tmp_path, monkeypatch):
    """What was asked for in former paths is what is gone on with."""
    home = shutil.copytree(replayed[0], tmp_path / "home")
    monkeypatch.chdir(home)
    (home / "old.py").write_text((STORED / "experiment.py").read_text())
    new = as_now((STORED / "experiment.py").read_text())
    (home / "new.py").write_text(new)
    grid = ["--grid", "terms.entropy.coef=0.02", "--terms.value.coef", 0.25]
    length = ["--total-timesteps", 64, "--phase-updates", 2]  # That of the replay.
    said(["sweep", "new.py", "--run-dir", "swept", *length, *grid])
    replay, swept = home / "replayed", home / "swept"
    done = json.loads((swept / "results.json").read_text())
    for run_dir in (replay, swept):
        as_before(run_dir)
        assert FORMER.search((run_dir / "config.json").read_text())
    assert FORMER.search((swept / "sweep.json").read_text())
    shutil.rmtree(replay / "checkpoints" / "8")
    (swept / "results.json").unlink()
    again = [
        ["replay", "run", "--to", "replayed", "--resume"],
        ["sweep", "old.py", "--run-dir", "swept", "--resume"],
    ]
    for line in again:
        assert not FORMER.search(said(line))
    assert json.loads((swept / "results.json").read_text()) == done
    assert not FORMER.search((swept / "sweep.json").read_text())

"""What `export` leaves of runs, and how it acts there."""

import json
import shutil
import sys
from pathlib import Path

import jax
import numpy as np
import pytest
from reported import unnamed

from ppo_jax import Policy, export
from ppo_jax.exports import program, runner
from ppo_jax.host.agents import runs

STORED = Path(__file__).parent / "stored"


def said(capsys, *words):
    """The status of the command, and what it says."""
    status = export.main([*map(str, words)])
    shown = capsys.readouterr()
    return status, shown.out + shown.err


def policy_of(run_dir, member):
    run = runs.restore(run_dir, "test")
    return Policy.of(jax.tree.map(lambda x: x[member], run.population.runs.learner))


def row_of(run_dir, update):
    """What a run logged after so many updates."""
    lines = map(json.loads, (run_dir / "metrics.jsonl").read_text().splitlines())
    return next(row for row in lines if row["time/iterations"] == update)


def lived(policy, call, steps=30):
    """Actions of a policy, and of something else that acts like it."""
    obs = np.random.default_rng(0).normal(size=(steps, 2, 1)).astype(np.float32)
    state, act, pairs = policy.init(2), jax.jit(policy.act), []
    for t, now in enumerate(obs):
        reset = np.array([t % 7 == 0, t % 5 == 0])
        action, state = act(state, now, reset=reset)
        pairs.append((np.asarray(action), np.asarray(call(now, reset))))
    return np.stack(pairs, axis=1)


def in_numpy(folder):
    policy = runner.Policy(folder)
    state = policy.init(2)

    def call(obs, reset):
        nonlocal state
        action, state = policy.act(state, obs, reset=reset)
        return action

    return call


def in_stablehlo(folder, policy):
    call = program.load(folder)
    carry = tuple(jax.tree.leaves(policy.init(2).carry))

    def step(obs, reset):
        nonlocal carry
        action, carry = call(carry, (obs,), reset)
        return action

    return step


def test_a_run_is_exported_whole(tmp_path, capsys):
    """With a memory, by both formats, beside what was trained."""
    pytest.importorskip("flatbuffers")
    run_dir = shutil.copytree(STORED / "recurrent", tmp_path / "run")
    status, text = said(capsys, run_dir)
    out = run_dir / "export"
    assert status == 0 and text.startswith("checkpoint 4, 128 steps, member 0\n"), text
    names = ("json", "npz", "py", "stablehlo")
    assert text.splitlines()[1:] == [str(out / f"policy.{name}") for name in names]
    told = json.loads((out / "policy.json").read_text())
    trained = told["trained"]
    assert trained["evaluation"]["update"] == 4
    expected = row_of(run_dir, 4)["eval/mean_reward"]
    assert trained["evaluation"]["mean_reward"] == expected
    assert trained["run"] == "run" and trained["update"] == 4
    assert trained["steps"] == 128 and trained["member"] == 0
    assert trained["experiment"]["env.limit"] == "5"
    assert told["versions"]["jax"] == jax.__version__
    policy = policy_of(run_dir, 0)
    for call in (in_numpy(out), in_stablehlo(out, policy)):
        theirs, ours = lived(policy, call)
        np.testing.assert_array_equal(ours, theirs)
        assert len(np.unique(ours)) == 2
    assert unnamed(run_dir, "A run") == {"digest.json"}  # Which is a test's own.
    status, text = said(capsys, run_dir, "--format", "numpy")  # Once more, and less.
    assert status == 0 and not (out / "policy.stablehlo").exists(), text


def test_a_member_is_exported_alone(tmp_path, capsys):
    """With its own parameters, numbers, normaliser and evaluation."""
    run_dir = shutil.copytree(STORED / "population", tmp_path / "run")
    row, found = row_of(run_dir, 6), {}
    lines = (run_dir / "lineage.jsonl").read_text().splitlines()
    gammas = json.loads(lines[-1])["numbers"]["gamma"]
    for member in (1, 2):
        out = tmp_path / str(member)
        options = ("--format", "numpy", "--member", member, "--out", out)
        status, text = said(capsys, run_dir, *options)
        assert status == 0 and f"member {member}\n" in text, text
        trained = runner.read(out)["trained"]
        assert (trained["member"], trained["members"]) == (member, 4)
        assert trained["experiment"]["gamma"] == repr(gammas[member])
        each = row[f"each/eval/mean_reward/{member}"]
        assert trained["evaluation"]["mean_reward"] == each
        policy = policy_of(run_dir, member)
        found[member] = runner.Policy(out).arrays
        head = found[member]["params.head.kernel"]
        np.testing.assert_array_equal(head, policy.params["head"]["kernel"])
        deviation = np.sqrt(np.asarray(policy.obs_moments.var, np.float64) + 1e-8)
        found_deviation = found[member]["deviation.0"]
        np.testing.assert_allclose(found_deviation, deviation, rtol=1e-6)
    heads = [arrays["params.head.kernel"] for arrays in found.values()]
    assert (heads[0] != heads[1]).any()


def test_without_flatbuffers_a_run_is_exported_for_numpy(tmp_path, capsys, monkeypatch):
    run_dir = shutil.copytree(STORED / "feed_forward", tmp_path / "run")
    monkeypatch.setitem(sys.modules, "flatbuffers", None)
    monkeypatch.delitem(sys.modules, "jax._src.export.serialization", raising=False)
    status, text = said(capsys, run_dir, "--format", "all")
    assert status == 2 and text == (
        "error: flatbuffers is missing: pip install 'ppo_jax[export]', or take "
        "the format numpy\n"
    )
    status, text = said(capsys, run_dir, "--format", "numpy")
    assert status == 0, text

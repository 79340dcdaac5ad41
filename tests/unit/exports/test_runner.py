"""The runner: one file, NumPy and nothing else, and errors in words."""

import ast
import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from agents import Sights, agent

from ppo_jax import Policy, networks
from ppo_jax.envs.env import Box, Discrete
from ppo_jax.exports import folder as folders
from ppo_jax.exports import runner

SEEN = (("x", (2,)), ("count", (1,)))
SMALL = networks.ActorCritic(networks.Mlp(hidden=(4,)), networks.Gru(size=3))


def exported(folder, space, **env):
    learner = agent(Sights(space=space, **env), network=SMALL, obs_clip=5.0)
    folders.write(folder, Policy.of(learner), "numpy", {"update": 7})
    return folder


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """The export of a policy that chooses among three, and sees two things."""
    space = Discrete(3)
    return exported(tmp_path_factory.mktemp("choice"), space, sights=SEEN)


def test_it_imports_numpy_and_what_python_has():
    nodes = [*ast.walk(ast.parse(Path(runner.__file__).read_text()))]
    names = {x.module for x in nodes if isinstance(x, ast.ImportFrom)}
    names |= {y.name for x in nodes if isinstance(x, ast.Import) for y in x.names}
    assert {name for name in names if name not in sys.stdlib_module_names} == {"numpy"}


def alone(folder):
    """What the file says as a program, where this package cannot be found."""
    words = [sys.executable, "-I", folder / runner.RUNNER]
    return subprocess.run(words, capture_output=True, text=True, check=False)


def test_as_a_program_it_says_what_an_export_is(folder):
    done = alone(folder)
    assert done.returncode == 0, done.stderr
    assert "update  7\n" in done.stdout
    assert "observation  obs.count: int32[n, 1]\n" in done.stdout
    assert "'kind': 'Discrete'" in done.stdout and "of zeros  [" in done.stdout


def test_as_a_program_it_fails_in_a_line(folder, tmp_path):
    for path in folder.iterdir():
        (tmp_path / path.name).write_bytes(path.read_bytes())
    (tmp_path / runner.ARRAYS).write_bytes(b"other")
    done = alone(tmp_path)
    assert done.returncode == 2 and done.stdout == ""
    assert done.stderr.endswith("policy.npz was changed since it was exported\n")
    assert len(done.stderr.splitlines()) == 1


OBS = {"x": np.zeros((2, 2), np.float32), "count": np.zeros((2, 1), np.int32)}
GIVEN = {
    "obs.x: expected float32[2, 2], got float64[2, 2]": {"x": np.zeros((2, 2))},
    "obs.x: expected float32[2, 2], got float32[1, 2]": {"x": OBS["x"][:1]},
    "obs.count: expected int32[2, 1], got 3": {"count": 3},
}


@pytest.mark.parametrize("said", GIVEN)
def test_an_observation_that_does_not_fit_is_told(folder, said):
    policy = runner.Policy(folder)
    with pytest.raises(ValueError) as error:
        policy.act(policy.init(2), OBS | GIVEN[said])
    assert str(error.value) == said


def test_other_arguments_that_do_not_fit_are_told(folder):
    policy = runner.Policy(folder)
    with pytest.raises(ValueError, match=r"obs: expected something at \['count'\]"):
        policy.act(policy.init(2), {"x": OBS["x"]})
    with pytest.raises(ValueError, match=r"mask: expected bool\[2, 3\], got bool\[3\]"):
        policy.act(policy.init(2), OBS, mask=np.ones(3, bool))


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"reset": np.array([True])}, "reset: expected bool[2], got bool[1]"),
        ({"reset": np.ones((2, 2), bool)}, "reset: expected bool[2], got bool[2, 2]"),
        ({"reset": np.array([1, 0])}, "reset: expected bool[2], got int64[2]"),
        ({"reset": True}, "reset: expected bool[2], got True"),
        ({"rng": 0}, "rng: expected a numpy.random.Generator, got 0"),
        ({"rng": np.random}, "rng: expected a numpy.random.Generator, got <module "),
    ],
)
def test_resets_and_generators_that_do_not_fit_are_told(folder, given, said):
    policy = runner.Policy(folder)
    with pytest.raises(ValueError) as error:
        policy.act(policy.init(2), OBS, **given)
    assert str(error.value).startswith(said)


@pytest.mark.parametrize("n", [0, -1, 1.5, "2"])
def test_without_an_episode_nothing_begins(folder, n):
    with pytest.raises(ValueError, match=f"n: expected at least 1, got {n!r}"):
        runner.Policy(folder).init(n)


def test_what_is_no_state_of_the_policy_is_told(folder):
    for state, said in ((OBS, r"\{'x'"), (runner.State((), np.ones(2, bool)), "State")):
        with pytest.raises(
            ValueError, match=f"state: expected that of `init`, got {said}"
        ):
            runner.Policy(folder).act(state, OBS)


def test_real_actions_have_no_mask(tmp_path):
    policy = runner.Policy(exported(tmp_path, Box((-1.0,), (1.0,)), sights=SEEN))
    with pytest.raises(ValueError, match=r"mask: expected None, got bool\[2, 1\]"):
        policy.act(policy.init(2), OBS, mask=np.ones((2, 1), bool))


def test_an_episode_that_begins_is_cleared_alone(folder):
    policy = runner.Policy(folder)
    _, state = policy.act(policy.init(2), OBS)
    _, went_on = policy.act(state, OBS)
    ended = np.array([True, False])
    _, after = policy.act(state, OBS, np.random.default_rng(0), reset=ended)
    np.testing.assert_array_equal(after.carry[0][0], state.carry[0][0])
    np.testing.assert_array_equal(after.carry[0][1], went_on.carry[0][1])


def test_what_may_be_done_is_to_be_told_where_actions_are_forbidden(tmp_path):
    folder = exported(tmp_path, Discrete(3), sights=SEEN, forbids=True)
    policy = runner.Policy(folder)
    with pytest.raises(ValueError, match=r"mask: expected bool\[2, 3\], got None"):
        policy.act(policy.init(2), OBS)
    second = np.tile([False, True, False], (2, 1))
    assert policy.act(policy.init(2), OBS, mask=second)[0].tolist() == [1, 1]
    assert alone(folder).returncode == 0


def test_samples_are_as_likely_as_the_policy_says(folder):
    """Against its own logits: the most likely choice, without the others in turn."""
    policy, n = runner.Policy(folder), 20_000
    obs = {name: np.repeat(x[:1], n, axis=0) for name, x in OBS.items()}
    state = policy.init(n)
    action, _ = policy.act(state, obs, np.random.default_rng(0))
    leaves = [obs["count"], obs["x"]]
    logits = outputs(policy, state, leaves)[0]
    expected = np.exp(logits) / np.exp(logits).sum()
    shares = np.bincount(action, minlength=3) / n
    np.testing.assert_allclose(shares, expected, atol=5 * 0.5 / n**0.5)
    mask = np.zeros((n, 3), bool)
    mask[:, 1:] = True
    action, _ = policy.act(state, obs, np.random.default_rng(0), mask=mask)
    expected = expected[1] / expected[1:].sum()
    np.testing.assert_allclose(np.mean(action == 1), expected, atol=5 * 0.5 / n**0.5)
    assert not (action == 0).any()


def test_real_samples_have_the_deviation_of_the_policy(tmp_path):
    folder = exported(tmp_path, Box((-100.0,) * 2, (100.0,) * 2))
    policy, n = runner.Policy(folder), 20_000
    obs = np.ones((n, 3), np.float32)
    mean, _ = policy.act(policy.init(n), obs)
    action, _ = policy.act(policy.init(n), obs, np.random.default_rng(0))
    z = (action - mean) / policy.arrays["scale"]
    assert action.dtype == np.float32
    np.testing.assert_allclose(z.mean(axis=0), 0, atol=5 / n**0.5)
    np.testing.assert_allclose(z.std(axis=0), 1, atol=5 / n**0.5)


def outputs(policy, state, leaves):
    """What the last layer puts out, in the place of an action."""
    kept = []
    policy._action = lambda outputs, mask, rng: kept.append(outputs)
    policy.step(state.carry, leaves, state.reset)
    del policy._action
    return kept[0]


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda x: x | {"version": 2}, "an export of a newer version, 2; expected 1"),
        (lambda x: x | {"version": 0}, "an export of an older version, 0; expected 1"),
        (lambda x: {"files": {}}, "no export: policy.json cannot be read (KeyError('v"),
        (lambda x: [], "no export: policy.json cannot be read (TypeError("),
        (lambda x: x | {"version": "one"}, "no export: policy.json cannot be read ("),
        (lambda x: x | {"files": {}}, "policy.npz was not exported: "),
        (lambda x: x | {"network": None}, "was not exported for NumPy"),
    ],
)
def test_what_is_no_export_of_this_version_is_told(folder, tmp_path, change, said):
    for path in folder.iterdir():
        (tmp_path / path.name).write_bytes(path.read_bytes())
    told = json.loads((folder / runner.DESCRIPTION).read_text())
    (tmp_path / runner.DESCRIPTION).write_text(json.dumps(change(told)))
    with pytest.raises(runner.ExportError) as error:
        runner.Policy(tmp_path)
    assert str(error.value).startswith(f"{tmp_path}: {said}")


def test_files_that_are_changed_or_missing_are_told(folder, tmp_path):
    for path in folder.iterdir():
        (tmp_path / path.name).write_bytes(path.read_bytes())
    text = (tmp_path / runner.RUNNER).read_text()
    (tmp_path / runner.RUNNER).write_text(text + "\n")
    runner.Policy(tmp_path)  # Which needs the arrays alone.
    with pytest.raises(runner.ExportError, match=r"policy\.py was changed since"):
        runner.read(tmp_path)
    (tmp_path / runner.ARRAYS).unlink()
    with pytest.raises(runner.ExportError, match=r"policy\.npz is missing"):
        runner.Policy(tmp_path)
    with pytest.raises(runner.ExportError, match=r"nowhere: no export: policy\.json"):
        runner.Policy(tmp_path / "nowhere")

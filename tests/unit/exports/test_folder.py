"""Where an export may be written, and what is in it then."""

import numpy as np
import pytest
from agents import Sights, agent

from ppo_jax import Policy, networks
from ppo_jax.errors import UserError
from ppo_jax.exports import folder as folders
from ppo_jax.exports import runner

POLICY = Policy.of(
    agent(Sights(), network=networks.ActorCritic(networks.Mlp(hidden=(4,))))
)


def names(folder):
    return {path.name for path in folder.iterdir()}


def test_an_export_replaces_another_and_leaves_nothing_of_it(tmp_path):
    pytest.importorskip("flatbuffers")
    both = {"policy.json", "policy.npz"}
    for kind, more in (
        ("all", {"policy.py", "policy.stablehlo"}),
        ("numpy", {"policy.py"}),
        ("stablehlo", {"policy.stablehlo"}),
    ):
        folders.require_free(tmp_path)
        folders.write(tmp_path, POLICY, kind, {})
        assert names(tmp_path) == both | more
        said = folders.read(tmp_path)
        assert said["files"].keys() == (both | more) - {"policy.json"}
        assert (said["network"] is None) == (kind == "stablehlo")


def test_a_folder_with_anything_else_is_left_alone(tmp_path):
    (tmp_path / "mine.txt").write_text("mine")
    said = "expected a new folder, or one with an export alone; it holds mine.txt"
    with pytest.raises(UserError, match=said):
        folders.require_free(tmp_path)
    assert names(tmp_path) == {"mine.txt"}
    (tmp_path / "mine.txt").rename(tmp_path / "policy.json")
    with pytest.raises(UserError, match=r"no export: policy\.json cannot be read"):
        folders.require_free(tmp_path)
    (tmp_path / "policy.json").unlink()
    folders.write(tmp_path, POLICY, "numpy", {})
    (tmp_path / "mine.txt").write_text("mine")
    with pytest.raises(UserError, match=r"it holds mine\.txt"):
        folders.require_free(tmp_path)
    (tmp_path / "mine.txt").unlink()
    (tmp_path / "policy.py").write_text("mine")
    with pytest.raises(UserError, match=r"policy\.py was changed since it was exp"):
        folders.require_free(tmp_path)


def test_arrays_are_read_without_pickles(tmp_path):
    folders.write(tmp_path, POLICY, "numpy", {})
    with np.load(tmp_path / runner.ARRAYS, allow_pickle=False) as arrays:
        kinds = {arrays[name].dtype.name for name in arrays.files}
    assert kinds == {"float32"}

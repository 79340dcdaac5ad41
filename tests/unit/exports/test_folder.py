"""Where an export may be written, and what is in it then."""

import itertools
import py_compile
from importlib import metadata
from pathlib import Path

import numpy as np
import pytest
from agents import Sights, agent

import ppo_jax
from ppo_jax import Policy, networks
from ppo_jax.errors import UserError
from ppo_jax.exports import folder as folders
from ppo_jax.exports import runner

POLICY = Policy.of(
    agent(Sights(), network=networks.ActorCritic(networks.Mlp(hidden=(4,))))
)


def names(folder):
    return {path.name for path in folder.iterdir()}


def dying(method, calls, last):
    """The same, whose call of this number among all does not come back."""

    def call(*given):
        if next(calls) == last:
            raise KeyboardInterrupt
        return method(*given)

    return call


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


def test_versions_are_known_where_nothing_was_installed(tmp_path, monkeypatch):
    """A checkout on PYTHONPATH is enough."""

    def none(_, name):
        raise metadata.PackageNotFoundError(name)

    monkeypatch.setattr(metadata.Distribution, "from_name", classmethod(none))
    folders.write(tmp_path, POLICY, "numpy", {})
    told = folders.read(tmp_path)["versions"]
    assert told["ppo_jax"] == ppo_jax.__version__
    assert told["numpy"] == np.__version__


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


@pytest.mark.parametrize("before", [True, False])
def test_killed_on_its_way_an_export_is_made_again(tmp_path, monkeypatch, before):
    """Whenever it is; the one before is whole until all of the new one is written."""
    for killed in range(6):  # Three files are written, and then three replaced.
        folder = tmp_path / str(killed)
        folder.mkdir()
        if before:
            folders.write(folder, POLICY, "numpy", {"run": "before"})
        with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
            calls = itertools.count()
            for name in ("write_bytes", "replace"):
                patch.setattr(Path, name, dying(getattr(Path, name), calls, killed))
            folders.write(folder, POLICY, "numpy", {"run": "after"})
        if before and killed <= 3:
            assert folders.read(folder)["trained"] == {"run": "before"}
        folders.require_free(folder)
        folders.write(folder, POLICY, "numpy", {"run": "after"})
        assert names(folder) == {"policy.json", "policy.npz", "policy.py"}
        assert folders.read(folder)["trained"] == {"run": "after"}


def test_what_python_keeps_of_an_imported_export_is_in_no_way(tmp_path):
    folders.write(tmp_path, POLICY, "numpy", {})
    py_compile.compile(str(tmp_path / "policy.py"))
    folders.require_free(tmp_path)
    written = folders.write(tmp_path, POLICY, "numpy", {})
    assert names(tmp_path) == {path.name for path in written} | {"__pycache__"}


def test_arrays_are_read_without_pickles(tmp_path):
    folders.write(tmp_path, POLICY, "numpy", {})
    with np.load(tmp_path / runner.ARRAYS, allow_pickle=False) as arrays:
        kinds = {arrays[name].dtype.name for name in arrays.files}
    assert kinds == {"float32"}

"""Imports that are put off until something is used."""

import importlib
import subprocess
import sys
import warnings

import pytest

from ppo_jax.envs.deferred import brought, deferred


def in_fresh_python(program):
    command = [sys.executable, "-c", program]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    return done.stdout.split()


def test_a_gymnax_environment_needs_no_plotting_library():
    said = in_fresh_python(
        "import sys\n"
        "from ppo_jax.envs import make\n"
        "print(make('CartPole-v1').action_space.n)\n"
        "print(*{'pandas', 'seaborn', 'matplotlib'} & sys.modules.keys())\n"
    )
    assert said == ["2"]


def test_a_deferred_module_is_there_as_soon_as_it_is_used():
    with deferred("this_module_is_missing", "sys"):
        stand_in = importlib.import_module("this_module_is_missing")

        assert sys.modules["sys"] is sys
    assert "this_module_is_missing" not in sys.modules
    assert not hasattr(stand_in, "__file__")
    with pytest.raises(ModuleNotFoundError, match="this_module_is_missing"):
        _ = stand_in.anything


@pytest.fixture
def package(tmp_path, monkeypatch):
    """A package of two parts; which of them are there, in the end."""
    home = tmp_path / "a_package"
    home.mkdir()
    for name in ("__init__", "one", "two"):
        (home / f"{name}.py").write_text(f"name = {name!r}\n")
    monkeypatch.syspath_prepend(tmp_path)
    yield lambda: {name for name in sys.modules if name.startswith("a_package")}
    for name in [name for name in sys.modules if name.startswith("a_package")]:
        del sys.modules[name]


@pytest.mark.parametrize("there", [(), ("a_package",), ("a_package", "a_package.one")])
def test_a_part_of_a_deferred_package_is_deferred(package, there):
    for name in there:
        importlib.import_module(name)
    with deferred("a_package", "a_package.one"):
        import a_package.one as one
        from a_package import one as the_same
    assert package() == {*there}
    assert (one.name, the_same.name) == ("one", "one")


def test_what_is_not_deferred_of_a_package_is_imported(package):
    with deferred("a_package", "a_package.one"):
        import a_package.one as one
        from a_package import two

        assert two.name == "two"
    assert package() == {"a_package", "a_package.two"}
    assert one.name == "one"


def test_gymnax_can_still_draw():
    said = in_fresh_python(
        "from ppo_jax.envs import make\n"
        "make('Pong-misc').action_space\n"
        "from gymnax.environments.misc import pong\n"
        "import seaborn, matplotlib.colors, matplotlib.pyplot\n"
        "print(pong.sns.color_palette is seaborn.color_palette)\n"
        "print(pong.plt.subplots is matplotlib.pyplot.subplots)\n"
        "colors = matplotlib.colors\n"
        "print(pong.colors.ListedColormap is colors.ListedColormap)\n"
    )
    assert said == ["True", "True", "True"]


@pytest.mark.parametrize("needed", ["", "import a_missing_part.of_it\n"])
def test_what_is_not_installed_is_an_error_that_says_how_to(
    tmp_path, monkeypatch, needed
):
    """The module itself, or what it needs in turn."""
    monkeypatch.syspath_prepend(tmp_path)
    absent = "a_suite"
    if needed:
        (tmp_path / "a_suite.py").write_text(needed)
        absent = "a_missing_part"
    said = rf"Toy.id: 'top' needs {absent}, .* pip install 'ppo_jax\[toys\]'"
    with pytest.raises(ValueError, match=said):
        brought("a_suite", extra="toys", wanted="Toy.id: 'top'")


def test_what_a_suite_warns_of_when_it_is_imported_is_not_shown(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "a_noisy_suite.py").write_text(
        "import warnings\nwarnings.warn('no longer maintained', DeprecationWarning)\n"
    )
    with warnings.catch_warnings(record=True) as heard:
        warnings.simplefilter("always")
        brought("a_noisy_suite", extra="toys", wanted="Toy.id: 'top'")
    assert not heard


def test_a_file_in_the_place_of_a_package_is_told(tmp_path, monkeypatch):
    """As an experiment that is called like the suite that it needs."""
    monkeypatch.syspath_prepend(tmp_path)
    file = tmp_path / "another_suite.py"
    file.touch()
    said = f"needs another_suite.envs, but {file} is found in its place: call that oth"
    with pytest.raises(ValueError, match=said):
        brought("another_suite.envs", "suite", "Suite.id: 'top'")

"""Imports point down, and go in no circle.

`python tests/project/test_layers.py` prints the layers as CONTRIBUTING.md has them.
"""

import ast
import functools
import graphlib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "ppo_jax"

# From high to low. An entry is a module, or a room with all of its modules that have no
# entry of their own.
LAYERS = {
    "commands": (
        "__main__",
        "train",
        "runs",
        "monitor",
        "evaluate",
        "watch",
        "sweep",
        "walkforward",
        "paper",
        "replay",
        "robustness",
        "export",
        "report",
        "selfcheck",
        "alerts",
    ),
    "studies": ("backtests", "monitoring", "reports", "sweeps"),
    "runs": ("exports", "host.agents", "host.loop"),
    "machine": ("host.devices", "host.programs"),
    "records": ("host.run_dir", "host.metrics", "host.process"),
    "agents": ("config", "policy", "ppo"),
    "objective": ("attacks", "terms"),
    "parts": (
        "controllers",
        "critics",
        "envs",
        "metrics",
        "networks",
        "optimizers",
        "pbt",
        "ppo.diagnostics",
        "state",
    ),
    "mathematics": ("losses", "normalization", "transforms", "returns", "schedules"),
    "ground": ("arrays", "component", "errors", "types"),
}
DEPTH = {entry: depth for depth, layer in enumerate(LAYERS.values()) for entry in layer}

HOMES = {
    "brax": "envs.brax",
    "craftax": "envs.craftax",
    "PIL": "host.agents.video",
    "flax.linen": "networks",
    "cloudpickle": "envs",
    "gymnasium": "envs.gymnasium",
    "gymnax": "envs.gymnax",
    "jumanji": "envs.jumanji",
    "imageio_ffmpeg": "host.agents.video",
    "matplotlib": "host.metrics.figures",
    "mujoco_playground": "envs.playground",
    "orbax": "host.run_dir.checkpoint",
    "pandas": "envs.trading",
    "rich": "host.process.console",
    "tensorboardX": "host.run_dir.events",
    "xminigrid": "envs.xminigrid",
}


def dotted(path):
    """`ppo_jax/envs/env.py` is `envs.env`; `ppo_jax/envs/__init__.py` is `envs`."""
    parts = path.relative_to(PACKAGE).with_suffix("").parts
    return ".".join(part for part in parts if part != "__init__")


@functools.cache
def imported(path):
    """Everything that a file imports anywhere, as `package.module.name`."""
    names = []
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            names += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            start = "." * node.level + (node.module or "")
            names += [f"{start}.{alias.name}" for alias in node.names]
        elif isinstance(node, ast.Call) and getattr(node.func, "id", "") == "brought":
            names.append(ast.literal_eval(node.args[0]))
    return names


FILES = {dotted(path): path for path in sorted(PACKAGE.rglob("*.py"))}
PACKAGES = {name for name, path in FILES.items() if path.name == "__init__.py"}
MODULES = sorted(FILES.keys() - PACKAGES)


def resolve(name):
    """The modules that `ppo_jax.….name` comes from; a package's are those it imports.

    >>> resolve("ppo_jax.types.Array")
    ['types']
    """
    parts = name.split(".")[1:]
    for end in range(len(parts), 0, -1):
        module = ".".join(parts[:end])
        if module in PACKAGES:
            return dependencies(module)
        if module in FILES:
            return [module]
    raise AssertionError(f"{name} is no module: import it from where it is defined")


def dependencies(module):
    """The modules of this package that a file imports."""
    names = imported(FILES[module])
    assert not any(name.startswith(".") for name in names), "use absolute imports"
    ours = [name for name in names if name.split(".")[0] == "ppo_jax"]
    return [found for name in ours for found in resolve(name)]


def around(module):
    """The rooms around a module, from the nearest one."""
    parts = module.split(".")
    return [".".join(parts[:end]) for end in range(len(parts) - 1, 0, -1)]


def entry_of(module):
    """The entry by which a module has its layer."""
    entries = [name for name in (module, *around(module)) if name in DEPTH]
    assert entries, f"{module}: place the new file in LAYERS"
    return entries[0]


def table():
    """The layers as Markdown, from high to low."""
    lines = ["| layer | rooms and modules |", "|---|---|"]
    for layer, entries in LAYERS.items():
        links = " · ".join(link(entry) for entry in entries)
        lines.append(f"| {layer} | {links} |")
    return "\n".join(lines) + "\n"


def link(entry):
    path = FILES[entry].relative_to(ROOT).as_posix()
    name = entry.replace(".", "/")
    if entry in PACKAGES:
        return f"[`{name}/`]({path.removesuffix('__init__.py')})"
    return f"[`{name}`]({path})"


def test_every_file_has_one_layer():
    """R-E13: and every entry is the layer of some module."""
    assert {entry_of(module) for module in MODULES} == set(DEPTH)
    assert len(DEPTH) == sum(len(layer) for layer in LAYERS.values())


def test_a_room_is_split_only_over_layers():
    for entry in DEPTH:
        for room in around(entry):
            assert DEPTH.get(room) != DEPTH[entry], f"{entry} is in {room} anyway"


@pytest.mark.parametrize("module", MODULES)
def test_imports_point_down(module):
    """R-D20, R-E13."""
    for other in dependencies(module):
        assert DEPTH[entry_of(other)] >= DEPTH[entry_of(module)], (
            f"{module} imports {other}"
        )


def test_imports_go_in_no_circle():
    """R-D20, R-E13: a `CycleError` shows the modules of one."""
    graph = {module: dependencies(module) for module in MODULES}
    graphlib.TopologicalSorter(graph).prepare()


def test_contributors_are_shown_the_layers():
    """Rerun `python tests/project/test_layers.py` after a change."""
    assert f"\n\n{table()}\n" in (ROOT / "CONTRIBUTING.md").read_text()


@pytest.mark.parametrize("package", sorted(PACKAGES))
def test_packages_export_names_of_their_own_folder(package):
    for name in imported(FILES[package]):
        own = f"ppo_jax.{package}." if package else "ppo_jax."
        assert name.startswith(own) or not package, f"{package} imports {name}"


@pytest.mark.parametrize("dependency", sorted(HOMES))
def test_a_heavy_dependency_is_imported_in_one_place(dependency):
    """A file, or a room."""
    home = HOMES[dependency]
    importers = {
        home if home in around(module) else module
        for module, path in FILES.items()
        if any(f"{name}.".startswith(f"{dependency}.") for name in imported(path))
    }
    assert importers == ({home} if home in FILES else set())


if __name__ == "__main__":
    print(table(), end="")

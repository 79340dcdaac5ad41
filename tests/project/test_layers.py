"""Imports point down: a module imports only from strictly lower layers."""

import ast
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parents[2] / "ppo_jax"

# From low to high; a new file is placed here. Within `losses`, files may import each
# other.
LAYERS = (
    (
        "component.coercion",
        "component.suggestion",
        "envs.deferred",
        "errors",
        "host.console",
        "host.exits",
        "host.stopwatch",
        "host.tables",
        "metrics.reductions",
        "sweeps.aggregate",
        "types",
    ),
    (
        "component.definition",
        "host.catalogue",
        "host.command",
        "host.distributed",
        "host.files",
        "host.interrupt",
        "host.script",
        "host.watchdog",
        "networks.distributions.distribution",
        "ppo.counting",
        "ppo.sharding",
        "tree",
    ),
    (
        "__main__",
        "attacks.norms",
        "component.paths",
        "controllers.pid",
        "controllers.smoothing",
        "controllers.value",
        "envs.env",
        "host.alerts",
        "host.logger",
        "losses.categorical",
        "losses.discrete",
        "losses.lagrangian",
        "losses.policy",
        "losses.quantile",
        "losses.risk",
        "losses.robust",
        "losses.value",
        "networks.distributions.discrete",
        "networks.distributions.gaussian",
        "networks.recurrence",
        "normalization.observations",
        "pbt.select",
        "pbt.space",
        "schedules",
        "transforms.noise",
        "transforms.vgs",
    ),
    (
        "alerts",
        "attacks.perturbations",
        "controllers.divergence",
        "controllers.entropy",
        "critics.clipping",
        "envs.check.behaviour",
        "envs.check.traces",
        "envs.gymnax",
        "envs.probes.bandits",
        "envs.probes.episodes",
        "host.alarms",
        "host.checkpoint",
        "networks.architecture",
        "normalization.return_scale",
        "optimizers.vgs",
        "pbt.explore",
        "returns",
        "transforms.upgd",
    ),
    (
        "controllers.early_stop",
        "critics.critic",
        "envs.check.check",
        "envs.wrappers",
        "networks.modules",
        "normalization.advantages",
        "optimizers.optimizer",
        "state",
    ),
    (
        "critics.categorical",
        "critics.quantile",
        "critics.scalar",
        "envs.faults",
        "optimizers.upgd",
        "pbt.exploit",
        "ppo.diagnostics",
    ),
    (
        "metrics.explained",
        "networks.network",
        "pbt.config",
        "ppo.snapshot",
        "terms.term",
    ),
    (
        "attacks.adversaries",
        "attacks.opponents",
        "terms.estimates",
        "terms.imitation",
        "terms.policy",
        "terms.robust",
        "terms.value",
    ),
    (
        "ppo.rollout",
        "terms.risk",
    ),
    (
        "config",
        "ppo.episodes",
        "ppo.objective",
    ),
    (
        "host.overrides",
        "ppo.update",
    ),
    (
        "host.experiment",
        "ppo.learner",
    ),
    (
        "ppo.population",
        "selfcheck",
        "sweeps.settings",
    ),
    (
        "host.lineage",
        "host.members",
        "host.mesh",
    ),
    (
        "host.figures",
        "host.training",
    ),
    (
        "host.conclusion",
        "host.runs",
        "report",
        "sweeps.cohorts",
    ),
    (
        "evaluate",
        "replay",
        "robustness",
        "sweeps.scores",
        "train",
    ),
    ("sweep",),
)
LEVEL = {name: level for level, layer in enumerate(LAYERS) for name in layer}

HOMES = {
    "flax.linen": "networks.modules",
    "gymnax": "envs.gymnax",
    "matplotlib": "host.figures",
    "orbax": "host.checkpoint",
    "rich": "host.console",
    "tensorboardX": "host.logger",
}


def dotted(path):
    """`ppo_jax/envs/env.py` is `envs.api`; `ppo_jax/envs/__init__.py` is `envs`."""
    parts = path.relative_to(PACKAGE).with_suffix("").parts
    return ".".join(part for part in parts if part != "__init__")


def imported(path):
    """Everything that a file imports anywhere, as `package.module.name`."""
    names = []
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            names += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            start = "." * node.level + (node.module or "")
            names += [f"{start}.{alias.name}" for alias in node.names]
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


def test_every_file_has_one_layer():
    """R-E13."""
    assert set(MODULES) <= set(LEVEL), "place the new file in LAYERS"
    assert len(LEVEL) == sum(len(layer) for layer in LAYERS)


@pytest.mark.parametrize("module", MODULES)
def test_imports_point_down(module):
    """R-D20, R-E13."""
    for other in dependencies(module):
        if not (module.startswith("losses.") and other.startswith("losses.")):
            assert LEVEL[other] < LEVEL[module], f"{module} imports {other}"


def test_losses_import_each_other_without_a_cycle():
    waiting = {
        module: {other for other in dependencies(module) if other.startswith("losses.")}
        for module in MODULES
        if module.startswith("losses.")
    }
    while waiting:
        free = [
            module for module, others in waiting.items() if not others & set(waiting)
        ]
        assert free, f"a cycle among {sorted(waiting)}"
        for module in free:
            del waiting[module]


@pytest.mark.parametrize("package", sorted(PACKAGES))
def test_packages_export_names_of_their_own_folder(package):
    for name in imported(FILES[package]):
        own = f"ppo_jax.{package}." if package else "ppo_jax."
        assert name.startswith(own) or not package, f"{package} imports {name}"


@pytest.mark.parametrize("dependency", sorted(HOMES))
def test_a_heavy_dependency_is_imported_in_one_file(dependency):
    importers = {
        module
        for module, path in FILES.items()
        if any(f"{name}.".startswith(f"{dependency}.") for name in imported(path))
    }
    home = HOMES[dependency]
    assert importers == ({home} if home in FILES else set())

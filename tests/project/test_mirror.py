"""`tests/unit/` mirrors the package: what a module does is tested in its namesake."""

import ast
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PACKAGE, UNIT = ROOT / "ppo_jax", ROOT / "tests" / "unit"

TABLE = "a table, which the runs of test_catalogue.py are held against"
FIT = "whole runs from Python: tests/runs/test_fit.py"
WALKS = "whole walk-forwards: tests/runs/test_walkforward.py"
WITHOUT = {
    "types.py": "names of types",
    "state.py": "fields of what training carries",
    "networks/architecture.py": "what test_network.py builds and test_config.py takes",
    "networks/distributions/distribution.py": "a protocol; its room has a contract",
    "backtests/keeping.py": WALKS,
    "backtests/page.py": WALKS,
    "backtests/standing.py": WALKS,
    "host/process/exits.py": "an enumeration",
    "host/run_dir/names.py": "names",
    "host/agents/fitting.py": FIT,
    "sweeps/fitting.py": "whole sweeps from Python: tests/runs/test_fit_all.py",
    "sweeps/running.py": "whole sweeps: tests/runs/test_sweep.py, test_fit_all.py",
    "host/agents/players.py": "what commands ask for: tests/runs/test_evaluate.py",
    "host/run_dir/recording.py": FIT,
    "host/agents/trained.py": FIT,
    "reports/charts.py": "what test_drawing.py draws",
    "reports/sections.py": "what test_page.py lays out",
    "attacks/metrics.py": TABLE,
    "attacks/targets.py": "what adversaries raise in test_adversaries.py",
    "host/metrics/rows.py": TABLE,
    "optimizers/metrics.py": TABLE,
    "ppo/metrics.py": TABLE,
    "terms/metrics.py": TABLE,
    "__main__.py": "a command: tests/runs/test_help.py",
    "train.py": "a command: tests/runs/test_resume.py",
    "runs.py": "a command: tests/runs/test_runs.py",
    "monitor.py": "a command: tests/runs/test_monitor.py",
    "evaluate.py": "a command: tests/runs/test_evaluate.py",
    "watch.py": "a command: tests/runs/test_watch.py",
    "sweep.py": "a command: tests/runs/test_sweep.py",
    "walkforward.py": "a command: tests/runs/test_walkforward.py",
    "paper.py": "a command: tests/runs/test_paper.py",
    "replay.py": "a command: tests/runs/test_replay.py",
    "robustness.py": "a command: tests/runs/test_robustness.py",
    "export.py": "a command: tests/runs/test_export.py",
    "report.py": "a command: tests/runs/test_report.py",
    "selfcheck.py": "a command: tests/runs/test_selfcheck.py",
    "alerts.py": "a command: tests/runs/test_console.py",
}
"""Modules without a namesake, and why. A command is run as a user runs it."""

FILES = {path.relative_to(PACKAGE) for path in PACKAGE.rglob("*.py")}
ROOMS = {path.parent for path in FILES if path.name == "__init__.py"}
MODULES = {path for path in FILES if path.name != "__init__.py"}
TESTS = sorted(str(path.relative_to(UNIT)) for path in UNIT.rglob("*.py"))


def namesake(module):
    """`ppo_jax/envs/env.py` is tested in `tests/unit/envs/test_env.py`."""
    return UNIT / module.parent / f"test_{module.name}"


@pytest.mark.parametrize("module", sorted(map(str, MODULES)))
def test_a_module_has_a_namesake_or_a_reason(module):
    """One of both, and not both."""
    assert namesake(Path(module)).exists() != (module in WITHOUT)


@pytest.mark.parametrize("test", TESTS)
def test_a_file_tests_what_there_is(test):
    """A module, or all modules of a room by their contract."""
    path = Path(test)
    assert path.name.startswith("test_")
    tested = path.with_name(path.name.removeprefix("test_"))
    assert tested in MODULES or tested.with_suffix("") in ROOMS


def test_reasons_are_of_modules_and_tests_that_there_are():
    assert {Path(module) for module in WITHOUT} <= MODULES
    for reason in WITHOUT.values():
        _, _, test = reason.partition("a command: ")
        assert (ROOT / test).exists()


@pytest.mark.parametrize("room", sorted(map(str, ROOMS)))
def test_a_room_only_exports(room):
    """What its `__init__` did would have no namesake."""
    body = ast.parse((PACKAGE / room / "__init__.py").read_text()).body
    allowed = ast.Import | ast.ImportFrom | ast.Assign | ast.Expr
    assert all(isinstance(node, allowed) or is_for_types(node) for node in body)


def is_for_types(node):
    """Whether only checkers of types see it: names that are imported at first use."""
    return isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"

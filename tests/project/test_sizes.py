"""What a reader has to hold in mind at once stays small."""

import ast
import statistics
from pathlib import Path

from ppo_jax.__main__ import COMMANDS

PACKAGE = Path(__file__).parents[2] / "ppo_jax"
FILES = sorted(PACKAGE.rglob("*.py"))
NO_CODE = {"py.typed", "__pycache__"}


def bodies(tree):
    """Lines of the body of every function, without its docstring."""
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef):
            rest = node.body[ast.get_docstring(node) is not None :]
            yield node.name, rest[-1].end_lineno - rest[0].lineno + 1 if rest else 0


def test_the_listing_of_the_package_fits_on_a_screen():
    commands = {f"{name}.py" for name in COMMANDS}
    listed = {path.name for path in PACKAGE.iterdir()} - NO_CODE
    assert commands <= listed
    assert len(listed - commands) <= 30
    assert len(commands) <= 14


def test_the_listing_of_a_room_fits_on_a_screen():
    rooms = {path.parent for path in FILES} - {PACKAGE}
    listed = {room: {path.name for path in room.iterdir()} - NO_CODE for room in rooms}
    assert {room for room, names in listed.items() if len(names) > 30} == set()


def test_files_are_short():
    lengths = {path: len(path.read_text().splitlines()) for path in FILES}
    assert {path: n for path, n in lengths.items() if n > 300} == {}
    assert statistics.median(lengths.values()) <= 150


def test_functions_fit_on_a_screen():
    long = {
        (path, name): lines
        for path in FILES
        for name, lines in bodies(ast.parse(path.read_text()))
        if lines > 50
    }
    assert long == {}

"""Every row of `docs/requirements.md` names tests that exist and quote its id."""

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
ROW = re.compile(r"^\|\s*([A-Z][\w.-]*\d)\s*\|[^|]+\|(.*)\|\s*$", re.MULTILINE)
ROWS = ROW.findall((ROOT / "docs" / "requirements.md").read_text())
SECTIONS = {
    **dict(zip(range(1, 8), (5, 8, 9, 7, 7, 5, 8), strict=True)),
    **dict(zip(range(8, 15), (4, 9, 6, 6, 11, 15, 6), strict=True)),
    **{15: 6, 16: 5, 17: 4, 18: 4, 21: 7},
}
"""How many propositions there are on each subject."""
LETTERS = {"R-A": 24, "R-B": 6, "R-C": 7, "R-D": 20, "R-E": 13}
LETTERS |= {"X": 12, "V": 12, "U": 7, "N": 6, "A": 6, "P": 12}
"""How many other requirements there are of each kind."""


def docstrings(file):
    """The docstrings of a file's test functions, by name."""
    body = ast.parse((ROOT / file).read_text()).body
    functions = [node for node in body if isinstance(node, ast.FunctionDef)]
    return {node.name: ast.get_docstring(node) or "" for node in functions}


def quotes(text, name):
    """Whether a text names an id, and not only a longer one that begins like it."""
    return re.search(rf"(?<![\w.-]){re.escape(name)}(?![\w-]|\.\d)", text) is not None


def test_quotes_tells_ids_apart():
    assert quotes("PROP-2.1, R-D14: text", "PROP-2.1")
    assert quotes("It ends with PROP-2.1.", "PROP-2.1")
    assert not quotes("PROP-2.10", "PROP-2.1")
    assert not quotes("PROP-2.1.3", "PROP-2.1")
    assert not quotes("R-D14", "D14")


def test_no_requirement_has_two_rows():
    names = [name for name, _ in ROWS]
    assert names
    assert not {name for name in names if names.count(name) > 1}


def test_every_requirement_has_a_row():
    """And every row a requirement."""
    kinds = {f"PROP-{section}.": count for section, count in SECTIONS.items()}
    expected = {
        f"{kind}{i}"
        for kind, count in (kinds | LETTERS).items()
        for i in range(1, count + 1)
    }
    assert {name for name, _ in ROWS} == expected | {"PROP-0"}


@pytest.mark.parametrize(("name", "tests"), ROWS, ids=[name for name, _ in ROWS])
def test_a_requirement_is_proved_by_tests_that_quote_it(name, tests):
    tests = tests.replace("`", "").replace(",", " ").split()
    assert tests
    for test in tests:
        file, function = test.split("::")
        assert quotes(docstrings(file)[function], name), f"{test} does not quote {name}"

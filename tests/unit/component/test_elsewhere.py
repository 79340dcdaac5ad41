"""Names of other libraries, as docs/switching.md has them, lead to fields."""

from pathlib import Path

import pytest

from ppo_jax import Config
from ppo_jax.component.elsewhere import FIELDS, translated
from ppo_jax.component.paths import paths
from ppo_jax.component.suggestion import closest

DOCUMENT = Path(__file__).parents[3] / "docs" / "switching.md"
LIBRARIES = ["stable-baselines3", "CleanRL", "purejaxrl", "rejax", "Brax"]
ROWS = [
    [cell.strip().replace("`", "") for cell in line.strip("|").split("|")]
    for line in DOCUMENT.read_text().splitlines()
    if line.startswith("|")
]


def test_the_document_has_a_column_for_each_library():
    assert ROWS[0] == ["here", *LIBRARIES]


@pytest.mark.parametrize("row", ROWS[2:], ids=lambda row: row[0])
def test_every_name_of_the_document_is_told(row):
    known = paths(Config("CartPole-v1"))
    names = [name for cell in row[1:] if cell for name in cell.split(", ")]
    assert row[0] in known and names
    for name in (*names, *map(str.upper, names)):
        assert closest(name, known) == row[0]


@pytest.mark.parametrize("name", [name for x in FIELDS.values() for name in x.split()])
def test_every_name_that_is_translated_is_that_of_a_field(name):
    """And of no field here, which would be taken for another."""
    known = paths(Config("CartPole-v1"))
    assert closest(name, known).endswith(translated(name))
    assert name not in known and translated(name) != name

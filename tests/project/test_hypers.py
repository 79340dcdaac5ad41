"""The table of all numbers."""

import runpy
from pathlib import Path

DOCS = Path(__file__).parents[2] / "docs"
DOCUMENT = DOCS / "hypers.md"
document = runpy.run_path(str(DOCS / "hypers.py"))["document"]


def test_the_document_is_up_to_date():
    """N5: rerun `python docs/hypers.py > docs/hypers.md` after a change."""
    assert DOCUMENT.read_text() == document()


def test_every_number_has_a_meaning():
    rows = [line for line in DOCUMENT.read_text().splitlines() if line[:3] == "| `"]
    assert len(rows) > 80
    assert [row for row in rows if row.split("|")[3].strip() == ""] == []


def test_numbers_are_found_by_their_type():
    text = document()
    assert "| `learning_rate` | `0.00025` |" in text
    assert "| `obs_clip` | `None` |" in text
    assert "`num_envs`" not in text

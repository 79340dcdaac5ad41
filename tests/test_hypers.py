"""The table of all numbers."""

from pathlib import Path

from ppo_jax import hypers

DOCUMENT = Path(__file__).parent.parent / "docs" / "hypers.md"


def test_the_document_is_up_to_date():
    """N5: rerun `python -m ppo_jax.hypers > docs/hypers.md` after a change."""
    assert DOCUMENT.read_text() == hypers.document()


def test_every_number_has_a_meaning():
    rows = [line for line in DOCUMENT.read_text().splitlines() if line[:3] == "| `"]
    assert len(rows) > 80
    assert [row for row in rows if row.split("|")[3].strip() == ""] == []


def test_numbers_are_found_by_their_type():
    text = hypers.document()
    assert "| `learning_rate` | `0.00025` |" in text
    assert "| `obs_clip` | `None` |" in text
    assert "`num_envs`" not in text

"""Tables in Markdown."""

import re

from ppo_jax.host.process.tables import markdown


def test_every_row_has_as_many_cells_as_the_header():
    """A bar within a cell is no end of it."""
    text = markdown(("a", "b|c", "d"), [("1", "|x|", ""), ("2", "y", "z | w")])
    lines = text.splitlines()
    assert lines[1] == "|---|---|---|" and len(lines) == 4
    assert {len(re.split(r"(?<!\\)\|", line)) for line in lines} == {5}
    assert text.endswith("| 2 | y | z \\| w |\n")


def test_a_table_may_be_empty_and_rows_may_come_one_by_one():
    assert markdown(["x"], []) == "| x |\n|---|\n"
    assert markdown(iter("x"), (iter("1") for _ in range(2))).count("| 1 |") == 2

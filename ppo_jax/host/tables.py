"""Tables for documents and terminals."""

from collections.abc import Iterable


def markdown(header: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    """A table in Markdown.

    >>> print(markdown(("x", "y"), [("1", "a")]), end="")
    | x | y |
    |---|---|
    | 1 | a |
    """
    lines = [[cell.replace("|", r"\|") for cell in line] for line in (header, *rows)]
    first, *rest = (f"| {' | '.join(line)} |\n" for line in lines)
    return "".join([first, "|---" * len(lines[0]) + "|\n", *rest])

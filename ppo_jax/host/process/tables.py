"""Tables for documents and terminals."""

from collections.abc import Iterable, Sequence


def markdown(header: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    """Returns a table in Markdown.

    >>> print(markdown(("x", "y"), [("1", "a")]), end="")
    | x | y |
    |---|---|
    | 1 | a |
    """
    lines = [[cell.replace("|", r"\|") for cell in line] for line in (header, *rows)]
    first, *rest = (f"| {' | '.join(line)} |\n" for line in lines)
    return "".join([first, "|---" * len(lines[0]) + "|\n", *rest])


def aligned(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Returns a table with columns as wide as needed, only the first left-aligned.

    >>> print(aligned(("run", "steps"), [("runs/x", "1"), ("y", "200")]), end="")
    run     steps
    runs/x      1
    y         200
    """
    lines = [header, *rows]
    first, *widths = (max(map(len, column)) for column in zip(*lines, strict=True))
    return "".join(
        "  ".join(
            [line[0].ljust(first)]
            + [cell.rjust(width) for cell, width in zip(line[1:], widths, strict=True)]
        )
        + "\n"
        for line in lines
    )

"""Run directories made by hand, and pages as a strict parser and a reader see them."""

import fnmatch
import json
import re
from pathlib import Path

import html5lib

from ppo_jax.host.run_dir import lineage

SVG = "{http://www.w3.org/2000/svg}"
HTML = "{http://www.w3.org/1999/xhtml}"
OUTSIDE = re.compile(
    r"<script|<link|<img|<iframe|@import|url\(|https?:|\bsrc=|\bhref=\"(?!#)", re.I
)
"""Markup that would make a page load something, or run a script."""


def row(update, **metrics):
    """Returns a row of metrics; `eval__mean_reward` is `eval/mean_reward`."""
    return {
        "step": 100 * update,
        "time/iterations": update,
        "time/time_elapsed": 2.0 * update,
        "time/fps": 100.0,
        "time/compiling": 1.0 if update == 1 else 0.0,
    } | {name.replace("__", "/"): value for name, value in metrics.items()}


def written(path, rows, generations=()):
    """Writes a run directory with these files only."""
    path.mkdir(parents=True, exist_ok=True)
    for name, lines in (("metrics", rows), ("lineage", generations)):
        if lines:
            text = "".join(json.dumps(line) + "\n" for line in lines)
            (path / f"{name}.jsonl").write_text(text)
    return path


def generations(size, count, numbers):
    """Returns a lineage in which the last member copies member 0 again and again."""
    first = lineage.beginning(size, numbers)
    parents = [*range(size - 1), 0]
    later = {"parent": parents, "copied": [i != p for i, p in enumerate(parents)]}
    return [first] + [first | later | {"update": 10 * i} for i in range(1, count)]


def parsed(text):
    """Parses a page, and checks that it is valid and loads nothing."""
    assert OUTSIDE.search(text) is None, OUTSIDE.search(text)
    return html5lib.HTMLParser(strict=True).parse(text)


def said(tree):
    """Returns all text of a page."""
    return " ".join(" ".join(tree.itertext()).split())


def pictures(tree):
    """Returns the pictures by their titles."""
    return {svg.find(f"{SVG}title").text: svg for svg in tree.iter(f"{SVG}svg")}


DOCUMENT = Path(__file__).parents[2] / "docs" / "run_directory.md"


def named(title):
    """Returns the documented patterns of files of a directory, and their writers."""
    _, _, text = DOCUMENT.read_text().partition(f"## {title}\n")
    lines = re.findall(
        r"^\| (\S+) \| (.*?) \|", text.partition("\n## ")[0], re.MULTILINE
    )
    found = {re.sub(r"\bN\b", "[0-9]*", name): by for name, by in lines}
    assert found.pop("file") == "written by" and len(found) > 10
    return found


def unnamed(place, title):
    """Returns the files in a directory that the document does not name."""
    found = (path for path in place.rglob("*") if path.is_file())
    names = {path.relative_to(place).as_posix() for path in found}
    return {x for x in names if not any(fnmatch.fnmatch(x, p) for p in named(title))}

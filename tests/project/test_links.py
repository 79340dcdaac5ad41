"""Documents lead to where things are: every link, and every file that they name."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "ppo_jax"
README = ROOT / "README.md"
DOCUMENTS = sorted(
    path.relative_to(ROOT).as_posix()
    for pattern in ("*.md", "[!.]*/*.md")
    for path in ROOT.glob(pattern)
)

LINK = re.compile(r"(?<!!)\[((?:`[^`]*`|[^]`])*)\]\(([^)\s]+)\)")
FENCED = re.compile(r"^```.*?^```$", re.DOTALL | re.MULTILINE)
INDENTED = re.compile(r"^    .*$", re.MULTILINE)
FILE = re.compile(r"`([\w./-]+\.(?:py|md))`")
NAME = re.compile(r"`((?:\w+\.)+(?!(?:py|md)`)\w+)`")
MODULE = re.compile(r"\b[a-z]+/\w*")


def prose(path):
    """A document without its blocks of code."""
    return INDENTED.sub("", FENCED.sub("", path.read_text()))


def anchors(path):
    """What headings of a document are called in links, as GitHub calls them."""
    headings = re.findall(r"^#+ (.*)$", FENCED.sub("", path.read_text()), re.MULTILINE)
    kept = [re.sub(r"[^\w\- ]", "", heading.lower()) for heading in headings]
    return {heading.strip().replace(" ", "-") for heading in kept}


def has(place, name):
    """Whether a file is the module `….name`, or defines `….name`."""
    last = name.rpartition(".")[2]
    definition = re.compile(rf"^(?:def|class) {last}\b", re.MULTILINE)
    return place.stem == last or definition.search(place.read_text()) is not None


def problems(path):
    """What is wrong with the links of a document."""
    for text, target in LINK.findall(prose(path)):
        if not target.startswith(("https://", "http://")):
            yield from (f"{target}: {what}" for what in misled(path, text, target))
    for file in FILE.findall(LINK.sub("", prose(path))):
        yield f"{file}: not linked"


def misled(path, text, target):
    """What is wrong with a link of a document to a place of the project."""
    file, _, anchor = target.partition("#")
    place = (path.parent / file).resolve() if file else path
    if not place.exists():
        yield "not there"
        return
    if anchor and anchor not in anchors(place):
        yield "no such heading"
    for file in FILE.findall(text):
        if not place.as_posix().endswith(f"/{file}"):
            yield f"not {file}"
    for name in NAME.findall(text):
        if not has(place, name):
            yield f"no {name}"


def test_there_are_documents():
    assert {"README.md", "CONTRIBUTING.md", "docs/design.md"} <= set(DOCUMENTS)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("[`b.md`](b.md), [b](b.md#two-words), [here](#a)", []),
        ("[`b.md`](c.md)", ["c.md: not there"]),
        ("[b](b.md#three)", ["b.md#three: no such heading"]),
        ("[`b.py`](b.md)", ["b.md: not b.py"]),
        ("[`c.py`](c.py), [`x.c`](c.py), [`c.f`](c.py), [`c.C`](c.py)", []),
        ("[`c.g`](c.py)", ["c.py: no c.g"]),
        ("`b.md`, and `python b.py`", ["b.md: not linked"]),
        ("```\n[b](c.md) `b.md`\n```\n\n    `b.md`", []),
        ("[web](https://example.org/none.md)", []),
    ],
)
def test_what_is_wrong_with_links(text, expected, tmp_path):
    (tmp_path / "a.md").write_text(f"# A\n\n{text}\n")
    (tmp_path / "c.py").write_text("class C:\n    def g(): ...\n\ndef f(): ...\n")
    (tmp_path / "b.md").write_text("# B\n\n## `Two` words!\n\n```\n# Three\n```\n")
    assert list(problems(tmp_path / "a.md")) == expected


@pytest.mark.parametrize("name", DOCUMENTS)
def test_links_and_names_of_files_lead_somewhere(name):
    assert list(problems(ROOT / name)) == []


def equations():
    """The files of every row of the README's table of equations, by its components."""
    _, table = README.read_text().split("| component | equation | file | paper |\n")
    rows = re.findall(r"^\| `.*$", table.partition("\n\n")[0], re.MULTILINE)
    cells = [re.split(r"(?<!\\)\|", row) for row in rows]
    return {components.strip(): files for _, components, _, files, *_ in cells}


EQUATIONS = equations()


@pytest.mark.parametrize("components", EQUATIONS)
def test_an_equation_is_a_click_away(components):
    places = [ROOT / target for _, target in LINK.findall(EQUATIONS[components])]
    assert places
    assert all(place.suffix == ".py" and PACKAGE in place.parents for place in places)


def test_the_picture_of_the_data_names_modules():
    picture = FENCED.search((ROOT / "docs" / "design.md").read_text())[0]
    names = set(MODULE.findall(picture))
    assert len(names) > 10
    assert {
        name
        for name in names
        if not (PACKAGE / name).is_dir() and not (PACKAGE / f"{name}.py").is_file()
    } == set()

"""Elements of a page, which escape whatever they hold."""

import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any
from xml.etree import ElementTree
from xml.etree.ElementTree import Element

Content = Any
"""A text, an element, several of them, or None."""
UNFIT = re.compile("[\0-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff\ufdd0-\ufdef\ufffe\uffff]")
"""Characters that no page may hold."""
STYLE = Path(__file__).with_name("page.css").read_text()
"""Style sheet of all elements, charts among them."""


def element(tag: str, *content: Content, **attributes: Any) -> Element:
    """Makes an element; `class_` is its class, `stroke_width` is `stroke-width`.

    Attributes that are None are left out.

    >>> markup(element("p", "1 < 2 ", element("b", "&"), class_='"'))
    '<p class="&quot;">1 &lt; 2 <b>&amp;</b></p>'
    """
    given = {k: v for k, v in attributes.items() if v is not None}
    names = {name: name.rstrip("_").replace("_", "-") for name in given}
    found = Element(tag, {names[k]: fit(str(v)) for k, v in given.items()})
    add(found, content)
    return found


def add(parent: Element, content: Content) -> None:
    """Appends content to an element."""
    if isinstance(content, Element):
        parent.append(content)
    elif isinstance(content, str):
        _write(parent, fit(content))
    elif isinstance(content, Iterable):
        for each in content:
            add(parent, each)


def fit(text: str) -> str:
    r"""Replaces the characters of a text that no page may hold.

    >>> fit("a\x1bb\ud800")
    'a�b�'
    """
    return UNFIT.sub("�", text)


def markup(root: Element) -> str:
    """Returns an element as HTML in ASCII, which readers need no encoding for."""
    return ElementTree.tostring(root, encoding="us-ascii", method="html").decode()


def document(title: str, head: Content, *body: Content) -> str:
    """Returns a whole page.

    Args:
        title: Title of the page.
        head: Further content of its head, such as `STYLE`.
        *body: Content that it shows.
    """
    screen = {"name": "viewport", "content": "width=device-width, initial-scale=1"}
    root = element(
        "html",
        element(
            "head",
            element("meta", charset="utf-8"),
            element("meta", **screen),
            element("title", title),
            head,
        ),
        element("body", body),
        lang="en",
    )
    return f"<!DOCTYPE html>\n{markup(root)}\n"


def table(header: Iterable[Content], rows: Iterable[Iterable[Content]]) -> Element:
    """Makes a table, the first column of which names its rows."""
    head = element("tr", [element("th", cell, scope="col") for cell in header])
    body = [
        element("tr", element("th", first, scope="row"), [element("td", c) for c in x])
        for first, *x in rows
    ]
    return element(
        "div",
        element("table", element("thead", head), element("tbody", body)),
        class_="wide",
        tabindex=0,
    )


def tiles(facts: Iterable[tuple[str, Content]]) -> Element:
    """Shows facts by name, side by side."""
    shown = [
        element("div", element("dt", name), element("dd", fact)) for name, fact in facts
    ]
    return element("dl", shown, class_="tiles")


def prose(text: str) -> list[Content]:
    """Marks the `names` of a text, which are between backticks, as code.

    >>> markup(element("p", prose("lower `gamma`, then `x`")))
    '<p>lower <code>gamma</code>, then <code>x</code></p>'
    """
    parts = text.split("`")
    return [code(part) if i % 2 else part for i, part in enumerate(parts)]


def code(text: str) -> Element:
    """Returns the element of a name, a path or a line of code."""
    return element("code", text)


def _write(parent: Element, text: str) -> None:
    if len(parent):
        parent[-1].tail = (parent[-1].tail or "") + text
    else:
        parent.text = (parent.text or "") + text

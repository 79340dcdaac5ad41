"""What a page holds is escaped, whatever it is."""

import html5lib
import pytest
from reported import HTML

from ppo_jax.reports.elements import element, markup, table

NASTY = [
    "<script>alert(1)</script>",
    '"><img src=x onerror=alert(1)>',
    "&lt;b&gt; ' & \" </title></style>",
    "a\0b\x1b[31m\ud800\ufffe\x9f",
]


@pytest.mark.parametrize("text", NASTY)
def test_texts_and_attributes_are_read_as_they_are_written(text):
    """By a strict parser of HTML; what no page may hold is replaced."""
    page = element(
        "html",
        element("head", element("title", text)),
        element("body", element("p", text, title=text), table([text], [[text, text]])),
    )
    tree = html5lib.HTMLParser(strict=True).parse("<!DOCTYPE html>" + markup(page))
    expected = text
    for unfit in "\0\x1b\ud800\ufffe\x9f":
        expected = expected.replace(unfit, "\ufffd")
    paragraph = tree.find(f".//{HTML}p")
    assert paragraph.text == paragraph.get("title") == expected
    cells = [*tree.iter(f"{HTML}th"), *tree.iter(f"{HTML}td")]
    assert [cell.text for cell in cells] == [expected] * 3
    assert tree.find(f".//{HTML}title").text == expected
    assert not list(tree.iter(f"{HTML}script")) and not list(tree.iter(f"{HTML}img"))


def test_a_page_is_ascii():
    """Whatever the encoding of the machine that writes it is."""
    assert markup(element("p", "ε → 5 %")).isascii()


def test_content_keeps_its_order():
    found = element("p", "a", element("b", "c"), None, ["d", [element("i"), "e"]])
    assert markup(found) == "<p>a<b>c</b>d<i></i>e</p>"

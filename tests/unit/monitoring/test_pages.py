"""Pages say what there is, and whatever a run is called or logs is text in them."""

import re
from html.parser import HTMLParser
from pathlib import Path

import pytest
from shelf import row, run

from ppo_jax.host.run_dir.presence import alone
from ppo_jax.monitoring import pages
from ppo_jax.monitoring.watch import Watch

HOSTILE = "<script>alert(1)</script>\"'><img src=x onerror=y>&amp;"
VOID = {"meta", "img", "input", "br"}


class Elements(HTMLParser):
    """The elements of a page, its texts, and whether it is well formed."""

    def __init__(self, page):
        super().__init__()
        self.found, self.texts, self.open = [], [], []
        self.feed(page)
        assert not self.open

    def handle_starttag(self, tag, attributes):
        self.found.append((tag, dict(attributes)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attributes):
        self.found.append((tag, dict(attributes)))

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.texts.append(data)

    @property
    def text(self):
        return " ".join(self.texts)


def elements(root, name=None):
    """The page of all runs, or of one."""
    with Watch(root).seen() as runs:
        if name is None:
            return Elements(pages.listing(root, runs, "NONCE"))
        return Elements(pages.of_run(name, runs, "NONCE"))


@pytest.fixture(scope="module")
def root(tmp_path_factory):
    root = tmp_path_factory.mktemp("runs")
    warned = {"warn/explained_variance_low": 1.0, "warn/<b>": 1.0}
    rows = [row(10, 1.5), row(20, 4.25), row(30, 3.5, **warned)]
    run(root / "sound", rows, saved=[3], ending="interrupted")
    run(root / HOSTILE.replace("/", "\\"), rows, ending="failed", why=HOSTILE)
    return root


def test_a_list_says_how_each_run_is(root):
    page = elements(root)
    for said in ("sound", "1 interrupted", "1 failed", "3.5", "4.25", "30 of 100"):
        assert said in page.text
    assert [x.get("class") for _, x in page.found].count("spark") == 2
    links = [x["href"] for tag, x in page.found if tag == "a"]
    assert "/run/sound" in links


@pytest.mark.parametrize("scores", [(None, None), (1.0, None), (1.0, 2.0)])
def test_a_list_draws_evaluations_or_else_training(scores, tmp_path):
    """A curve has two points; returns of training go up, those of evaluations down."""
    steps = enumerate(scores, start=1)
    run(tmp_path / "a", [row(10 * i, score and -score) for i, score in steps])
    page = elements(tmp_path)
    ((_, drawn),) = (x for x in page.found if "line" in x[1].get("class", ""))
    first, last = re.findall(r"[ML][\d.]+[ ,]([\d.]+)", drawn["d"])
    falls = float(last) > float(first)  # Heights of a picture count from above.
    assert falls == (None not in scores)


def test_a_page_says_all_of_a_run(root):
    """And an alert, with what it means; a report as soon as there is one."""
    page = elements(root, "sound")
    for said in ("Training return", "Evaluation", "Steps per second", "30 of 100"):
        assert said in page.text
    assert "warn/explained_variance_low" in page.text and "too small" in page.text
    assert "--resume" in page.text and "no report yet" in page.text
    (root / "sound" / "report.html").write_text("x")
    links = [x["href"] for tag, x in elements(root, "sound").found if tag == "a"]
    (root / "sound" / "report.html").unlink()
    assert links == ["/", "/report/sound"]


def test_the_page_of_a_walk_forward_is_its_own(tmp_path):
    """The command `report` makes none."""
    place = run(tmp_path / "a", ending="finished")
    (place / "walk.json").write_text("{}")
    text = elements(tmp_path, "a").text
    assert f"{place}/backtest.html" in text and "ppo_jax.report" not in text


def test_an_alert_is_told_without_the_one_above_it(tmp_path):
    name = "warn/log_ratio_severe_instability"
    page = elements(run(tmp_path / "a", [row(10, 1.5, **{name: 1.0})]).parent, "a")
    assert "20 000 times" in page.text and "early_stop" in page.texts
    assert "As above" not in page.text and "`" not in page.text


def test_time_left_is_told_of_what_is_under_way(root):
    with alone(root / "sound"):
        assert "7 s left" in elements(root).text
        assert "time left" in elements(root, "sound").text


def test_names_and_causes_are_text(root):
    """No element, attribute or handler comes of what a run is called or says."""
    name = HOSTILE.replace("/", "\\")
    for page in (elements(root), elements(root, name)):
        assert name in page.text
        tags = [tag for tag, _ in page.found]
        assert tags.count("script") == 1 and "img" not in tags and "b" in {*tags, "b"}
        for tag, attributes in page.found:
            assert not [x for x in attributes if x.startswith("on")], tag
    assert "warn/<b>" in elements(root, name).text


def test_nothing_is_fetched_from_elsewhere(root):
    for page in (elements(root), elements(root, "sound")):
        for _, attributes in page.found:
            assert not attributes.keys() & {"src", "style"}
            assert attributes.get("href", "/").startswith("/")
        assert "//" not in "".join(x for x in page.texts if "url(" in x)
        nonces = [x.get("nonce") for tag, x in page.found if tag in ("style", "script")]
        assert nonces == ["NONCE", "NONCE"]


def test_a_folder_without_runs_and_a_run_without_rows_have_pages(tmp_path):
    assert "no run yet" in elements(tmp_path).text
    run(tmp_path / "x", budget={})
    assert "nothing yet" in elements(tmp_path, "x").text
    assert "x" in elements(tmp_path).text


def test_a_sweep_has_its_batches_and_no_charts(tmp_path):
    """Nor has a run that merely begins like another one."""
    sweep = run(tmp_path / "sweep")
    (sweep / "sweep.json").write_text("{}")
    run(sweep / "batches" / "001", [row(10, 6.5), row(20, 7.25)])
    run(tmp_path / "sweeper", [row(10)])
    page = elements(tmp_path, "sweep")
    links = [x["href"] for tag, x in page.found if tag == "a"]
    assert links == ["/", "/run/sweep/batches/001"]
    assert "7.25" in page.text and "figure" not in [tag for tag, _ in page.found]
    found = elements(sweep, "")
    assert "/run/batches/001" in [x["href"] for tag, x in found.found if tag == "a"]


def test_of_many_runs_the_others_are_counted(tmp_path, monkeypatch):
    monkeypatch.setattr(pages, "MOST", 2)
    for name in "abcde":
        run(tmp_path / name)
    page = elements(tmp_path)
    assert "and 3 more" in page.text
    assert [tag for tag, _ in page.found].count("tr") == 3


def test_an_address_leads_to_its_run_alone():
    assert pages.address("run", "../x") == "/run/../x"
    assert pages.address("run", "%2e%2e?#") == "/run/%252e%252e%3F%23"
    assert not re.search(r"[^ -~]", pages.address("run", "é\udcff"))
    assert Path(pages.address("report", "a/b")) == Path("/report/a/b")

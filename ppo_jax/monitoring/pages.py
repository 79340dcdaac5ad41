"""Pages about runs: each is whole, with its style and a short script."""

import collections
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from urllib.parse import quote
from xml.etree.ElementTree import Element

import numpy as np

from ppo_jax.host.metrics import alerts
from ppo_jax.host.metrics.figures import SCORE
from ppo_jax.host.process import command
from ppo_jax.host.process.console import duration, figure
from ppo_jax.host.run_dir.batched import OF_BATCHES, WALK
from ppo_jax.host.run_dir.names import BACKTEST_PAGE, REPORT
from ppo_jax.monitoring.listing import UNKNOWN, ago, number, printable, steps
from ppo_jax.monitoring.status import RUNNING, STATES, Status
from ppo_jax.monitoring.tail import FITTEST, Tail
from ppo_jax.monitoring.watch import Seen
from ppo_jax.reports.charts import TONES, Chart, Curve, Size
from ppo_jax.reports.drawing import draw, sparkline
from ppo_jax.reports.elements import (
    STYLE,
    Content,
    code,
    document,
    element,
    prose,
    table,
    tiles,
)
from ppo_jax.reports.scales import written

OWN_STYLE = Path(__file__).with_name("page.css").read_text()
SCRIPT = Path(__file__).with_name("page.js").read_text()
MOST = 500
"""The most rows of a list; further runs are only counted."""
SIZE, DETAIL = Size(640, 230, 5, 1.0), 400
"""Size of a chart, and the most points of a curve."""
HEADER = ("run", "state", "progress", "evaluation", "best", "", "")
CHARTS = {
    "Evaluation": {"evaluation": SCORE, "fittest member": FITTEST},
    "Training return": {"training return": "rollout/ep_rew_mean"},
    "Steps per second": {"steps per second": "time/fps"},
    "Alerts": {"active alerts": "warn/*"},
}
"""Charts of a run: titles, names of curves, and their metrics."""
FROM = {"Steps per second": (0.0,), "Alerts": (0.0,)}
"""Values that the vertical axes of some charts have to show."""
GONE = "The monitor has ended; this is what it showed last."


def listing(root: Path, runs: Mapping[str, Seen], nonce: str) -> str:
    """Returns the page of all runs below a folder."""
    counts = collections.Counter(run.status.state for run in runs.values())
    badges = [_badge(x, f"{counts[x]} {x}") for x in STATES if counts[x]]
    shown = element("p", badges), _table(runs)
    return _page(
        "Runs",
        nonce,
        element("h1", "Runs below ", _code(root)),
        shown if runs else element("p", "no run yet", class_="none"),
    )


def of_run(name: str, runs: Mapping[str, Seen], nonce: str) -> str:
    """Returns the page of one run, with the runs below it, such as those of a sweep."""
    run, home = runs[name], f"{name}/" if name else ""
    now, tail = run.status, run.tail
    below = {x: y for x, y in runs.items() if x.startswith(home) and x != name}
    drawn = CHARTS if tail.rows or not below else {}
    return _page(
        _called(run),
        nonce,
        element("nav", element("a", "all runs", href="/")),
        element("h1", _called(run)),
        element("p", _badge(now.state, now.state), printable(now.why)),
        _facts(now, tail),
        element("p", _links(run)),
        element("p", "next: ", _code(now.next)) if now.next else None,
        element("div", [_chart(x, now, tail) for x in drawn], class_="grid"),
        _alerts(tail),
        [element("h2", "Runs below it"), _table(below)] if below else None,
    )


def missing(nonce: str) -> str:
    """Returns the page for addresses without a run."""
    return _page(
        "Nothing",
        nonce,
        element("h1", "There is no such run"),
        element("p", "See ", element("a", "all runs", href="/"), "."),
    )


def address(kind: str, name: str) -> str:
    """Returns the address of a run's page, or of its report.

    >>> address("run", "a b/<x>")
    '/run/a%20b/%3Cx%3E'
    """
    return f"/{kind}/{quote(os.fsencode(name))}"


def _page(title: str, nonce: str, *body: Content) -> str:
    again: dict[str, Any] = {"http_equiv": "refresh", "content": 5}
    return document(
        title,
        [
            element("style", STYLE, OWN_STYLE, nonce=nonce),
            element("noscript", element("meta", **again)),
        ],
        element("main", body),
        element("p", GONE, id="gone", hidden=""),
        element("script", SCRIPT, nonce=nonce),
    )


def _table(runs: Mapping[str, Seen]) -> list[Element]:
    """Returns a table with a row per run."""
    shown = list(runs.values())[:MOST]
    more = len(runs) - len(shown)
    others = [element("p", f"and {more:,} more, longer ago")] if more else []
    return [table(HEADER, map(_row, shown)), *others]


def _row(run: Seen) -> tuple[Content, ...]:
    now, curves = run.status, run.tail.curves
    evaluated, trained = (_curve("", curves[x]) for x in (SCORE, "rollout/ep_rew_mean"))
    return (
        element("a", _called(run), href=address("run", run.name)),
        _badge(now.state, now.state),
        _progress(now),
        number(now.last),
        number(now.best),
        sparkline(evaluated if len(evaluated.x) > 1 else trained),
        f"{duration(now.left)} left" if now.left is not None else ago(now.changed),
    )


def _facts(now: Status, tail: Tail) -> list[Content]:
    """Returns the progress of a run, and a few facts about it."""
    facts = {
        "kind": now.kind,
        "steps": steps(now),
        "last evaluation": number(now.last),
        "best evaluation": number(now.best),
        "steps per second": number(tail.last.get("time/fps")),
        "trained for": _time(tail.last.get("time/time_elapsed")),
        "time left": _time(now.left) if now.state == RUNNING else "",
        "last written": ago(now.changed),
        "lines that are none": f"{tail.odd}" if tail.odd else "",
    }
    known = tiles(x for x in facts.items() if x[1] not in ("", UNKNOWN))
    return [_progress(now) if now.total else None, known]


def _chart(title: str, now: Status, tail: Tail) -> Element:
    """Draws a chart of a run's curves, with their last values."""
    found = {name: tail.curves[metric] for name, metric in CHARTS[title].items()}
    known = {name: curve for name, curve in found.items() if curve.last}
    if not known:
        none = element("p", "nothing yet", class_="none")
        return element("figure", element("figcaption", element("strong", title)), none)
    marks = [_curve(*each) for each in zip(known, known.values(), TONES, strict=False)]
    text = "last " + ", ".join(figure(mark.y[-1]) for mark in marks)
    ends = (0, now.total or 0)
    chart = Chart(
        title, marks, text=text, log=False, across=ends, up=FROM.get(title, ())
    )
    return draw(chart, SIZE, DETAIL)


def _curve(name: str, points: Any, tone: str = TONES[0]) -> Curve:
    x, y = np.array([*points], np.float64).reshape(-1, 2).T
    return Curve(name, x, y, tone, dots=len(x) == 1)


def _alerts(tail: Tail) -> list[Element]:
    """Returns every alert there was, with its causes and remedies."""
    if not tail.alerts:
        return []
    told = sorted(tail.alerts.items(), key=lambda x: (-x[1], x[0]))
    return [
        element("h2", "Alerts"),
        *(
            element(
                "details",
                element("summary", _code(name), " ", _since(tail, step)),
                _meaning(name),
            )
            for name, step in told
        ),
    ]


def _since(tail: Tail, step: int) -> Content:
    if tail.last.get("step") == step:
        return _badge("failed", "active")
    return f"last active after {step:,} steps"


def _meaning(name: str) -> list[Element]:
    texts = (text for x in alerts.advised(name) for text in (x.causes, x.remedy))
    return [element("p", prose(text)) for text in dict.fromkeys(texts)]


def _links(run: Seen) -> Content:
    report = run.run_dir / REPORT
    if report.is_file() and not report.is_symlink():
        return element("a", "report", href=address("report", run.name))
    if run.status.kind == OF_BATCHES[WALK]:
        return "report: ", _code(run.run_dir / BACKTEST_PAGE)
    return "no report yet: ", _code(command.typed("report", run.run_dir))


def _progress(now: Status) -> Content:
    if not now.total:
        return steps(now)
    return (
        element("progress", max=now.total, value=now.step),
        element("small", f"{written(now.step)} of {written(now.total)}"),
    )


def _badge(state: str, text: str) -> Element:
    return element("span", text, class_=f"state {state}")


def _called(run: Seen) -> str:
    """Returns the name of a run; a run without one has that of its folder."""
    return printable(run.name or run.run_dir.name)


def _code(value: object) -> Element:
    return code(printable(str(value)))


def _time(seconds: float | None) -> str:
    return "" if seconds is None else duration(seconds)

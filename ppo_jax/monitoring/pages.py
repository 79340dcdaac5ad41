"""Pages about runs: each is whole, with its style and a short script."""

import collections
import math
import os
from collections.abc import Iterable, Mapping
from html import escape
from pathlib import Path
from urllib.parse import quote

from ppo_jax.host import alerts
from ppo_jax.host.console import duration, figure
from ppo_jax.host.figures import SCORE
from ppo_jax.metrics.rows import match
from ppo_jax.monitoring import charts
from ppo_jax.monitoring.listing import UNKNOWN, ago, number, printable, steps
from ppo_jax.monitoring.status import RUNNING, STATES, Status
from ppo_jax.monitoring.style import SCRIPT, STYLE
from ppo_jax.monitoring.tail import FITTEST, Tail
from ppo_jax.monitoring.watch import Seen

MOST = 500
"""Rows of a list; of more runs, the others are counted."""
REPORT = "report.html"
HEADER = ("run", "state", "progress", "evaluation", "best", "", "")
CHARTS = {
    "Evaluation": {"evaluation": SCORE, "fittest member": FITTEST},
    "Training return": {"training return": "rollout/ep_rew_mean"},
    "Steps per second": {"steps per second": "time/fps"},
    "Alerts": {"active alerts": "warn/*"},
}
"""What is drawn of a run: titles, names of curves, and their metrics."""
FROM = {"Steps per second": 0.0, "Alerts": 0.0}
"""Where the axes of some begin."""


def listing(root: Path, runs: Mapping[str, Seen], nonce: str) -> str:
    """The page of all runs below a folder."""
    counts = collections.Counter(run.status.state for run in runs.values())
    said = " · ".join(
        f'<span class="state {state}">{counts[state]} {state}</span>'
        for state in STATES
        if counts[state]
    )
    body = [
        f"<h1>Runs below <code>{_text(root)}</code></h1>",
        f"<p>{said}</p>{_table(runs)}" if runs else '<p class="none">no run yet</p>',
    ]
    return _page("Runs", body, nonce)


def of_run(name: str, runs: Mapping[str, Seen], nonce: str) -> str:
    """The page of one run, with those that are below it, as of a sweep."""
    run, home = runs[name], f"{name}/" if name else ""
    now, tail = run.status, run.tail
    below = {x: y for x, y in runs.items() if x.startswith(home) and x != name}
    drawn = CHARTS if tail.rows or not below else {}
    body = [
        '<nav><a href="/">all runs</a></nav>',
        f"<h1>{_text(_called(run))}</h1>",
        f"<p>{_badge(now)}{_text(f' {now.why}') if now.why else ''}</p>",
        _facts(now, tail),
        f"<p>{_links(run)}</p>",
        f"<p>next: <code>{_text(now.next)}</code></p>" if now.next else "",
        '<div class="charts">',
        *(_figure(title, names, now, tail) for title, names in drawn.items()),
        "</div>",
        _alerts(tail),
        f"<h2>Runs below it</h2>{_table(below)}" if below else "",
    ]
    return _page(printable(_called(run)), body, nonce)


def missing(nonce: str) -> str:
    """The page that stands for any other."""
    body = ["<h1>There is no such run</h1>", '<p>See <a href="/">all runs</a>.</p>']
    return _page("Nothing", body, nonce)


def address(kind: str, name: str) -> str:
    """Where a run's page is, or its report.

    >>> address("run", "a b/<x>")
    '/run/a%20b/%3Cx%3E'
    """
    return f"/{kind}/{quote(os.fsencode(name))}"


def _page(title: str, body: Iterable[str], nonce: str) -> str:
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f'<title>{_text(title)}</title><style nonce="{nonce}">{STYLE}</style>'
        '<noscript><meta http-equiv="refresh" content="5"></noscript></head>'
        f"<body><main>{''.join(body)}</main>"
        '<p id="gone" hidden>The monitor has ended; this is what it showed last.</p>'
        f'<script nonce="{nonce}">{SCRIPT}</script></body></html>'
    )


def _table(runs: Mapping[str, Seen]) -> str:
    """Runs, a row each."""
    shown = list(runs.values())[:MOST]
    head = "".join(f"<th>{title}</th>" for title in HEADER)
    rows = "".join(map(_row, shown))
    more = len(runs) - len(shown)
    return f"<table><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table>" + (
        f"<p>and {more:,} more, longer ago</p>" if more else ""
    )


def _row(run: Seen) -> str:
    now = run.status
    link = f'<a href="{address("run", run.name)}">{_text(_called(run))}</a>'
    left = f"{duration(now.left)} left" if now.left is not None else ago(now.changed)
    points = list(run.tail.curves[SCORE])
    if len(points) < 2:
        points = list(run.tail.curves["rollout/ep_rew_mean"])
    cells = (
        link,
        _badge(now),
        _progress(now),
        number(now.last),
        number(now.best),
        charts.sparkline(points),
        left,
    )
    names = ("name", "", "progress", "number", "number best", "line", "when")
    return (
        "<tr>"
        + "".join(
            f'<td class="{name}">{cell}</td>'
            for name, cell in zip(names, cells, strict=True)
        )
        + "</tr>"
    )


def _facts(now: Status, tail: Tail) -> str:
    """What a run is, in a few numbers."""
    facts = {
        "kind": now.kind,
        "steps": steps(now),
        "last evaluation": number(now.last),
        "best evaluation": number(now.best),
        "steps per second": number(tail.last.get("time/fps")),
        "trained for": _time(tail.last.get("time/time_elapsed")),
        "time left": _time(now.left) if now.state == RUNNING else "",
        "heard of": ago(now.changed),
        "lines that are none": f"{tail.odd}" if tail.odd else "",
    }
    cells = "".join(
        f"<div><dt>{name}</dt><dd>{_text(value)}</dd></div>"
        for name, value in facts.items()
        if value not in ("", UNKNOWN)
    )
    return f"{_progress(now) if now.total else ''}<dl>{cells}</dl>"


def _figure(title: str, names: dict[str, str], now: Status, tail: Tail) -> str:
    """A chart with its title and what its curves are called."""
    curves = {name: list(tail.curves[metric]) for name, metric in names.items()}
    curves = {name: points for name, points in curves.items() if points}
    keys = "".join(
        f'<span class="key c{i}">{name}</span>' for i, name in enumerate(curves)
    )
    last = [figure(points[-1][1]) for points in curves.values()][-1:]
    said = keys if len(curves) > 1 else f"<b>{''.join(last)}</b>"
    drawn = charts.chart(curves, now.total, FROM.get(title, math.inf))
    return f"<figure><figcaption>{title} {said}</figcaption>{drawn}</figure>"


def _alerts(tail: Tail) -> str:
    """Every alert there was, with what it means and what to do about it."""
    if not tail.alerts:
        return ""
    told = "".join(
        f"<details><summary><code>{_text(name)}</code> {_since(tail, step)}</summary>"
        f"{_meaning(name)}</details>"
        for name, step in sorted(tail.alerts.items(), key=lambda x: (-x[1], x[0]))
    )
    return f"<h2>Alerts</h2>{told}"


def _since(tail: Tail, step: int) -> str:
    if tail.last.get("step") == step:
        return '<span class="state failed">active</span>'
    return f"last active after {step:,} steps"


def _meaning(name: str) -> str:
    rows = [row for row in alerts.ALERTS if match(row.name, name) is not None]
    return "".join(f"<p>{_text(x.causes)}</p><p>{_text(x.remedy)}</p>" for x in rows)


def _links(run: Seen) -> str:
    report = run.run_dir / REPORT
    if report.is_file() and not report.is_symlink():
        return f'<a href="{address("report", run.name)}">report</a>'
    return f"no report yet: <code>python -m ppo_jax.report {_text(run.run_dir)}</code>"


def _progress(now: Status) -> str:
    if not now.total:
        return f'<span class="number">{steps(now)}</span>'
    return (
        f'<progress max="{now.total}" value="{now.step}"></progress>'
        f"<small>{charts.short(now.step)} of {charts.short(now.total)}</small>"
    )


def _badge(now: Status) -> str:
    return f'<span class="state {now.state}">{now.state}</span>'


def _called(run: Seen) -> str:
    """Its name; that of the folder itself is the folder's."""
    return run.name or run.run_dir.name


def _time(seconds: float | None) -> str:
    return "" if seconds is None else duration(seconds)


def _text(value: object) -> str:
    """Text that is nothing but text, in a page."""
    return escape(printable(str(value)))

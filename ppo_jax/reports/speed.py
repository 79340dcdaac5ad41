"""Speed of a run, and the shares of its time."""

import itertools
from xml.etree.ElementTree import Element

import numpy as np

from ppo_jax.reports.charts import TONES, Chart, Curve
from ppo_jax.reports.elements import element
from ppo_jax.reports.learning import clock
from ppo_jax.reports.records import SECONDS, STEP, Record
from ppo_jax.reports.scales import elapsed
from ppo_jax.reports.sections import Grid, Part, Section
from ppo_jax.reports.strips import Bar, strip

SPEED, COMPILING = "time/fps", "time/compiling"


def section(run: Record) -> Section:
    """Returns the shares of a run's time, and charts of its steps per second."""
    parts: list[Part] = [_shares(times(run))]
    x, y = run.series(SPEED)
    if x.size:
        text = "Once compiled; of all members together."
        chart = Chart("Speed", [Curve("", x, y)], unit="steps / s", text=text)
        parts.append(Grid([chart, _clock(run)]))
    return Section("Speed", parts)


def times(run: Record) -> dict[str, float]:
    """Returns seconds by use; those before a run was resumed are not known.

    >>> row = {"step": 100, "time/fps": 50.0, "time/compiling": 3.0}
    >>> run = Record(None, [row | {"time/time_elapsed": 6.0}], [], {}, {}, [])
    >>> times(run)
    {'training': 2.0, 'compiling': 3.0, 'evaluations and the rest': 1.0}
    """
    total = run.last(SECONDS)
    steps = np.diff(run.column(STEP), prepend=0.0)
    speed = run.column(SPEED)
    each = np.where(speed > 0, steps * run.members / np.where(speed > 0, speed, 1), 0)
    training = float(each.sum())
    compiling = float(np.nansum(run.column(COMPILING)))
    rest = max(0.0, total - training - compiling) if np.isfinite(total) else 0.0
    return {
        "training": training,
        "compiling": compiling,
        "evaluations and the rest": rest,
    }


def _shares(spent: dict[str, float]) -> Element:
    """Returns a bar of the shares of time, and its parts in words."""
    total = sum(spent.values()) or 1.0
    shares = [f"{k}: {elapsed(v)}, {v / total:.0%}" for k, v in spent.items()]
    ends = [end / total for end in itertools.accumulate(spent.values())]
    bars = [
        Bar(begin, end, f"share {tone}")
        for begin, end, tone in zip([0.0, *ends], ends, TONES, strict=False)
    ]
    legend = [
        element("li", text, class_=f"area {tone}")
        for text, tone in zip(shares, TONES, strict=False)
    ]
    picture = strip("Where the time went", "; ".join(shares), bars)
    return element("div", picture, element("ul", legend, class_="legend"))


def _clock(run: Record) -> Chart:
    """Charts steps over time, where a pause or a slow stretch is a bend."""
    x, y = run.series(STEP, SECONDS)
    name, unit = clock(x)
    text = "A flat stretch went to something else than steps."
    curve = Curve("", np.append(0.0, x / unit), np.append(0.0, y))
    return Chart("Steps over time", [curve], name, "steps", text, log=False)

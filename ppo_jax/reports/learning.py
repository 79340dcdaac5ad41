"""Returns of a run: in training, in evaluations, and in their worst episodes."""

import numpy as np

from ppo_jax.host.metrics.figures import BEST, SCORE
from ppo_jax.reports.charts import Band, Chart, Curve, Mark, Threads
from ppo_jax.reports.records import SECONDS, STEP, Record
from ppo_jax.reports.sections import Grid, Section

TRAINING = "rollout/ep_rew_mean"
UNITS = (("hours", 3600.0), ("minutes", 60.0), ("seconds", 1.0))
NORMAL = 1.96
"""Deviations around the mean within which 95 % of a normal distribution lie."""


def section(run: Record) -> Section:
    """Charts returns over steps and over time, and their spread in evaluations."""
    charts = [_returns(run, STEP), _returns(run, SECONDS), _distribution(run)]
    return Section("Learning", [Grid([chart for chart in charts if chart.marks])])


def clock(seconds: np.ndarray) -> tuple[str, float]:
    """Returns a unit in which times are read easily, and its seconds.

    >>> clock(np.array([0.0, 7200.0]))
    ('hours', 3600.0)
    """
    longest = float(np.nanmax(seconds)) if np.isfinite(seconds).any() else 0.0
    fitting = (unit for unit in UNITS if longest >= 2 * unit[1])
    return next(fitting, UNITS[-1])


def scored(run: Record, x: str = STEP) -> list[Mark]:
    """Returns evaluations with an interval: over members, or of a single run's mean."""
    at, mean = run.series(SCORE, x)
    if not at.size:
        return []
    line = Curve("evaluation", at, mean, "one", dots=True)
    if run.members == 1:
        return [*_of_the_mean(run, x), line]
    best_at, best = run.series(f"best/{SCORE}", x)
    return [
        _each(run, x),
        *spread(run, SCORE, "quartiles of the members", x),
        line._replace(name="evaluation, the median member"),
        Curve("evaluation, the fittest member", best_at, best, "three"),
    ]


def spread(
    run: Record, name: str, label: str, x: str = STEP, tone: str = "one"
) -> list[Mark]:
    """Returns the quartiles of a metric over the members, if there are several."""
    at, low = run.series(f"q25/{name}", x)
    high_at, high = run.series(f"q75/{name}", x)
    same = at.size and np.array_equal(at, high_at)
    return [Band(label, at, low, high, tone)] if same else []


def _returns(run: Record, x: str) -> Chart:
    at, mean = run.series(TRAINING, x)
    marks = spread(run, TRAINING, "", x, "two")
    if at.size:
        marks += [Curve("training", at, mean, "two")]
    marks += scored(run, x)
    if x == STEP:
        return Chart("Return", marks, "steps", text="over steps")
    name, unit = clock(run.series(SECONDS)[1])
    timed = [_scaled(mark, unit) for mark in marks]
    return Chart("Return", timed, name, text="over time", across=(0.0,))


def _scaled(mark: Mark, unit: float) -> Mark:
    """Converts a mark over seconds to another unit."""
    if isinstance(mark, Threads):
        lines = [(np.asarray(x) / unit, y) for x, y in mark.lines]
        return mark._replace(lines=lines)
    return mark._replace(x=mark.x / unit)


def _of_the_mean(run: Record, x: str) -> list[Mark]:
    """Returns 95 % intervals of the means of evaluations, by their deviations."""
    at, mean = run.series(SCORE, x)
    _, deviation = run.series("eval/std_reward", x)
    _, episodes = run.series("eval/episodes", x)
    alike = at.size == mean.size == deviation.size == episodes.size
    if not alike or not (episodes > 1).any():
        return []
    deviation = np.where(episodes > 1, deviation, np.nan)  # One tells nothing of it.
    half = NORMAL * deviation / np.sqrt(np.maximum(episodes, 1))
    return [Band("95 % of its mean", at, mean - half, mean + half)]


def _each(run: Record, x: str) -> Threads:
    lines = [run.series(f"each/{SCORE}/{i}", x) for i in range(run.members)]
    return Threads(f"{run.members} members", lines)


def _distribution(run: Record) -> Chart:
    """Charts the returns of single episodes; in a population, the fittest member's."""
    best = "best/" if BEST in run.names else ""
    median, low, high, tail, mean = (
        run.series(f"{best}eval/{name}_reward")
        for name in ("median", "q25", "q75", "cvar_5", "mean")
    )
    marks: list[Mark] = []
    if np.array_equal(low[0], high[0]) and low[0].size:
        marks.append(Band("middle half of the episodes", low[0], low[1], high[1]))
    for name, (x, y), tone in (
        ("median", median, "one"),
        ("mean", mean, "three dashed"),
        ("mean of the worst 5 % (CVaR)", tail, "four"),
    ):
        if x.size:
            marks.append(Curve(name, x, y, tone))
    whose = "of the fittest member" if best else "of an evaluation"
    return Chart("Returns of episodes", marks, text=whose)

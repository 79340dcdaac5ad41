"""Aggregate scores of several settings, with their intervals.

All definitions are those of Agarwal et al., 2021: `ppo_jax.sweeps.aggregate`.
"""

from collections.abc import Sequence

import numpy as np

from ppo_jax.reports.charts import TONES, Band, Chart, Curve, Mark, Points, Threads
from ppo_jax.reports.contenders import Contender
from ppo_jax.reports.elements import element, table
from ppo_jax.reports.records import is_number
from ppo_jax.reports.scales import written
from ppo_jax.reports.sections import Grid, Part, Section
from ppo_jax.reports.strips import Estimate, forest, pair
from ppo_jax.sweeps import aggregate, scores

STEPS, LEVELS = 60, 150
"""The most points of interquartile means, and the points of performance profiles."""
DRAWS = 400
"""Draws of the bootstrap for the interval of each point."""
FEW = 4
"""The most contenders that are compared each with each."""


def standing(found: Sequence[Contender]) -> Section:
    """Returns interquartile means with their intervals, the best one first."""
    scored = [scores.statistics(each.column, found[0].column) for each in found]
    scored[0] |= scores.UNCOMPARED
    order = sorted(range(len(found)), key=lambda i: -scored[i]["iqm"])
    rows = [
        (
            found[i].name,
            str(scored[i]["runs"]),
            written(scored[i]["iqm"]),
            pair(scored[i]["interval"]),
            ""
            if scored[i]["improvement"] is None
            else f"{scored[i]['improvement']:.2f}",
            pair(scored[i]["improvement_interval"]),
        )
        for i in order
    ]
    estimates = [
        Estimate(found[i].name, scored[i]["iqm"], scored[i]["interval"], tone_of(i))
        for i in order
    ]
    ends = [x for each in scored for x in (each["iqm"], *(each["interval"] or ()))]
    known = [x for x in ends if np.isfinite(x)]
    header = [cell.replace("the first", found[0].name) for cell in scores.HEADER]
    parts: list[Part] = [table(header, rows)]
    if any(1 < each["runs"] < scores.ENOUGH for each in scored):
        parts.append(element("p", scores.NARROW))
    if known and len(found) > 1:
        parts.append(forest(estimates, min(known), max(known)))
    return Section("Standing", parts)


def tone_of(index: int) -> str:
    """Returns the colour of a contender in all pictures; faint if none is left."""
    return TONES[index] if index < len(TONES) else "faint"


def curves(found: Sequence[Contender], metric: str) -> Section:
    """Charts interquartile means over steps, and the shares of runs above scores."""
    marks: list[Mark] = []
    if rest := found[len(TONES) :]:
        lines = [(run.steps, run.scores) for each in rest for run in each.trials]
        marks.append(Threads(f"runs of {len(rest)} more", lines))
    for each, tone in zip(found, TONES, strict=False):
        marks += _over_steps(each, tone)
    text = "Interquartile mean of the runs, with its interval."
    charts = [Chart(metric, marks, text=text, log=False)]
    if any(len(each.column) > 1 for each in found):
        charts.append(_profiles(found, metric))
    return Section("Curves", [Grid(charts)])


def chances(found: Sequence[Contender]) -> Section | None:
    """Returns the probabilities that a run of one contender beats one of another.

    None: fewer than two contenders have several runs.
    """
    able = [each for each in found if len(each.column) > 1]
    pairs = [(other, able[0]) for other in able[1:]]
    if len(able) <= FEW:
        pairs = [(b, a) for i, a in enumerate(able) for b in able[i + 1 :]]
    if not pairs:
        return None
    better = aggregate.probability_of_improvement
    estimates = [
        Estimate(
            f"{ours.name} over {theirs.name}",
            float(better(ours.column, theirs.column)),
            aggregate.interval(better, ours.column, theirs.column),
        )
        for ours, theirs in pairs
    ]
    note = element("p", "½ is chance; an interval apart from it is a difference.")
    parts = [note, forest(estimates, 0.0, 1.0, middle=0.5)]
    return Section("Probability of improvement", parts)


def sensitivity(found: Sequence[Contender], metric: str) -> Section | None:
    """Charts scores over the numbers that a sweep varied; None: there are none."""
    paths = dict.fromkeys(path for each in found for path in each.setting)
    charts = []
    for path in paths:
        given = [each.setting.get(path) for each in found for _ in each.column]
        known = {value for value in given if is_number(value)}
        if len(known) > 1 and all(map(is_number, given)):
            x, y = np.array(given, float), _last(found)
            points = Points("runs", x, y)
            charts.append(Chart(path, [points], path, metric, log=False))
    return Section("Sensitivity", [Grid(charts)]) if charts else None


def _last(found: Sequence[Contender]) -> np.ndarray:
    return np.concatenate([each.column[:, 0] for each in found])


def _over_steps(each: Contender, tone: str) -> list[Mark]:
    known = [run for run in each.trials if run.steps.size]
    if len(known) < 2:
        name = each.name
        return [Curve(name, run.steps, run.scores, tone, dots=True) for run in known]
    steps, values = common([(run.steps, run.scores) for run in known])
    if not steps.size:  # Nowhere are all of them known.
        return [Curve(each.name, x.steps, x.scores, tone, dots=True) for x in known]
    middle = aggregate.interquartile_mean(values.T[:, :, None])
    low, high = _intervals(aggregate.interquartile_mean, values.T[:, :, None])
    middle = np.where(np.isfinite(middle), middle, np.nan)
    name = f"{each.name} ({len(known)} runs)"
    return [
        Band("", steps, low, high, tone),
        Curve(name, steps, middle, tone, dots=True),
    ]


def common(
    curves: Sequence[tuple[np.ndarray, np.ndarray]],
) -> tuple[np.ndarray, np.ndarray]:
    """Returns steps that all runs have reached `[n]`, and scores there `[runs, n]`.

    >>> one = (np.array([0.0, 4.0]), np.array([0.0, 8.0]))
    >>> other = (np.array([2.0, 6.0]), np.array([1.0, 1.0]))
    >>> [part.tolist() for part in common([one, other])]
    [[2.0, 4.0], [[4.0, 8.0], [1.0, 1.0]]]
    """
    first = max(steps[0] for steps, _ in curves)
    final = min(steps[-1] for steps, _ in curves)
    every = np.unique(np.concatenate([steps for steps, _ in curves]))
    steps = every[(every >= first) & (every <= final)]
    if steps.size > STEPS:
        steps = steps[np.linspace(0, steps.size - 1, STEPS).round().astype(int)]
    return steps, np.array([np.interp(steps, *curve) for curve in curves])


def _intervals(statistic, columns: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Returns intervals of a statistic by column `[n, runs, 1]`; NaN if not finite."""
    ends = [aggregate.interval(statistic, column, draws=DRAWS) for column in columns]
    known = np.array(ends, np.float64).reshape(-1, 2)
    low, high = np.where(np.isfinite(known), known, np.nan).T
    return low, high


def _profiles(found: Sequence[Contender], metric: str) -> Chart:
    """Charts the share of runs with a score above τ, over τ."""
    every = _last(found)
    known = every[np.isfinite(every)]
    low, high = (known.min(), known.max()) if known.size else (0.0, 1.0)
    margin = 0.05 * (high - low) or 1.0
    levels = np.linspace(low - margin, high + margin, LEVELS)
    marks: list[Mark] = []
    for each, tone in zip(found, TONES, strict=False):
        if len(each.column) > 1:
            marks.append(_profile_band(each, levels, tone))
        share = aggregate.performance_profile(each.column, levels)
        marks.append(Curve(each.name, levels, share, tone))
    text = "Share of runs whose last score is above τ."
    return Chart("Performance profile", marks, f"τ, {metric}", text=text, log=False)


def _profile_band(each: Contender, levels: np.ndarray, tone: str) -> Band:
    """Returns the interval of a profile: at each level, of the share of runs above."""
    above = (np.nan_to_num(each.column, nan=-np.inf) > levels).astype(float)
    low, high = _intervals(lambda x: x.mean(axis=(-2, -1)), above.T[:, :, None])
    return Band("", levels, low, high, tone)

"""A page that compares runs, or the settings of a sweep."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from ppo_jax.errors import UserError
from ppo_jax.host.metrics.figures import SCORE
from ppo_jax.reports import about, standings, troubles
from ppo_jax.reports.charts import Chart, Curve
from ppo_jax.reports.contenders import Contender, differing, gather
from ppo_jax.reports.elements import code, element, table
from ppo_jax.reports.learning import TRAINING
from ppo_jax.reports.page import page
from ppo_jax.reports.records import SECONDS, Record
from ppo_jax.reports.scales import UNKNOWN, elapsed, written
from ppo_jax.reports.sections import Grid, Section
from ppo_jax.reports.speed import SPEED
from ppo_jax.reports.standings import tone_of

BESIDE = (
    TRAINING,
    "train/approx_kl",
    "train/policy_entropy",
    "train/explained_variance",
    "train/value_loss",
    SPEED,
)
"""Metrics whose curves of all runs are drawn into one chart."""
MEDIAN = "Of a population it is that of the median member. "
SURE = (
    "Intervals are 95 % by the stratified bootstrap over runs; one run alone says "
    "nothing of chance, and has none."
)


def of(paths: Sequence[Path]) -> str:
    """Returns the page that compares the runs or sweeps of some directories.

    Raises:
        UserError: If one is no run or sweep, or there is nothing to compare.
    """
    found, runs, metric = gather(paths)
    if not any(trial.scores.size for each in found for trial in each.trials):
        raise UserError(f"{paths[0]}: expected runs with {metric}, got none")
    scored = [each for each in found if each.column.size]
    count = sum(len(each.column) for each in scored)
    more = sum(len(each.trials) for each in found) - count
    unknown = f"{more} more {'has' if more == 1 else 'have'} none. " if more else ""
    whose = MEDIAN if any(run.members > 1 for run in runs) else ""
    text = (
        f"{metric}, by the last evaluation of each of {count} runs. "
        f"{unknown}{whose}{SURE}"
    )
    sections = [
        standings.standing(scored),
        standings.curves(scored, metric),
        standings.chances(scored),
        standings.sensitivity(scored, metric),
        _beside(found, runs),
        _runs(runs),
    ]
    title = " · ".join(map(str, paths))
    lead = [element("p", text), about.notes(runs)]
    return page(title, lead, [each for each in sections if each is not None])


def _beside(found: Sequence[Contender], runs: Sequence[Record]) -> Section | None:
    """Returns charts of metrics with all runs in each; None: no run has any of them."""
    known = {run.name: run for run in runs}
    charts = [Chart(name, _each(found, known, name)) for name in BESIDE]
    charts = [chart for chart in charts if chart.marks]
    return Section("Side by side", [Grid(charts)]) if charts else None


def _each(
    found: Sequence[Contender], runs: Mapping[str, Record], name: str
) -> list[Curve]:
    """Returns a metric's curve of every run that has it, in its contender's colour."""
    curves = []
    for index, each in enumerate(found):
        label, tone = each.name, tone_of(index)
        for run in (runs[trial.name] for trial in each.trials if trial.name in runs):
            if name in run.names:
                curves.append(Curve(label, *run.series(name), tone))
                label = ""
    return curves


def _runs(runs: Sequence[Record]) -> Section | None:
    """Returns a table of the runs, and one of the fields in which they differ."""
    if not runs:
        return None
    header = ("run", "state", "steps", "time", SCORE, "CVaR 5 %", "steps / s", "alerts")
    rows = [
        (
            run.name,
            run.state,
            f"{run.rows[-1]['step']:,.0f}",
            elapsed(run.last(SECONDS)),
            written(run.last(SCORE)),
            written(run.last("eval/cvar_5_reward")),
            written(run.last(SPEED)),
            str(troubles.summary(run)[0]),
        )
        for run in runs
    ]
    fields = [
        (code(path), *(run.field(path, UNKNOWN) for run in runs))
        for path in (*differing(runs), "seed")
    ]
    heading = element("h3", "Where their experiments differ")
    names = ("field", *(run.name for run in runs))
    return Section("Runs", [table(header, rows), heading, table(names, fields)])

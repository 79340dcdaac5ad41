"""The page of a walk-forward: one file, in the style of all reports."""

from typing import Any

from ppo_jax.backtests import curves, standing, summary
from ppo_jax.backtests.results import Results
from ppo_jax.reports import page
from ppo_jax.reports.elements import element
from ppo_jax.reports.scales import written


def of(title: str, results: Results, numbers: dict[str, Any]) -> str:
    """Returns the page as text.

    Args:
        title: Title of the page.
        results: Results of the walk-forward.
        numbers: The results in numbers, from `summary.as_json`.
    """
    plan, times = results.plan, results.times
    prices = plan.market.prices
    first, last = (str(time)[:10] for time in (times[0], times[-1]))
    lead = (
        f"{len(plan.folds)} tests in a row, {first} to {last}, {plan.whole.bars} bars "
        f"of {len(prices.bars.symbols)} assets; {len(plan.settings)} settings of "
        f"{plan.seeds} seeds. A year is {written(results.year)} bars."
    )
    sections = [
        standing.section(numbers),
        curves.section(results),
        standing.luck(numbers),
        standing.frontier(numbers),
        standing.folds(results, numbers),
        standing.calibration(numbers),
    ]
    known = [section for section in sections if section is not None]
    texts = [element("p", lead)]
    about = f"{type(prices).__name__}: {prices.note}" if prices.note else ""
    lines = [element("p", note) for note in (about, *summary.notes(numbers)) if note]
    if lines:
        texts.append(element("div", lines, class_="notes"))
    return page.page(title, texts, known, "walkforward")

"""The page of a walk-forward: one file, in the style of all reports."""

from typing import Any

from ppo_jax.backtests import curves, standing
from ppo_jax.backtests.results import Results
from ppo_jax.reports import page
from ppo_jax.reports.elements import element
from ppo_jax.reports.scales import exactly

CAVEAT = (
    "What was bought and sold here is what a data set has, which is what was still "
    "traded when it was put together: those that went under are missing, and whoever "
    "holds any of these did better than they could have done. So compare agents with "
    "baselines on the same prices, and not with the world."
)


def of(title: str, results: Results, said: dict[str, Any]) -> str:
    """The page as text.

    Args:
        title: Where it is.
        results: What came of the walk-forward.
        said: The same in numbers, `summary.as_json`.
    """
    plan, times = results.plan, results.times
    prices = plan.config.env.prices
    first, last = (str(time)[:10] for time in (times[0], times[-1]))
    lead = (
        f"{len(plan.folds)} tests in a row, {first} to {last}, {plan.whole.bars} bars "
        f"of {len(prices.bars.symbols)} assets; {exactly(plan.trials)} trials: "
        f"{len(plan.settings)} settings of {plan.seeds} seeds. {type(prices).__name__}."
    )
    sections = [
        standing.section(said),
        curves.section(results),
        standing.luck(said),
        standing.frontier(said),
        standing.folds(results, said),
        standing.calibration(said),
    ]
    known = [section for section in sections if section is not None]
    note = element("div", element("ul", element("li", CAVEAT)), class_="notes")
    return page.page(title, [element("p", lead), note], known, "walkforward")

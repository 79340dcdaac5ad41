"""The page of a walk-forward: one file, in the style of all reports."""

import inspect
import re
from typing import Any

from ppo_jax.backtests import curves, standing
from ppo_jax.backtests.results import Results
from ppo_jax.envs.trading import Prices
from ppo_jax.reports import page
from ppo_jax.reports.elements import element
from ppo_jax.reports.scales import exactly

CAVEAT = (
    "A data set has what was still traded when it was put together: those that went "
    "under are missing, and whoever holds what is there does better than anybody could "
    "have known. Compare agents with baselines on the same prices, not with the world."
)


def of(title: str, results: Results, said: dict[str, Any]) -> str:
    """The page as text.

    Args:
        title: Where it is.
        results: What came of the walk-forward.
        said: The same in numbers, `summary.as_json`.
    """
    plan, times = results.plan, results.times
    prices = plan.market.prices
    first, last = (str(time)[:10] for time in (times[0], times[-1]))
    lead = (
        f"{len(plan.folds)} tests in a row, {first} to {last}, {plan.whole.bars} bars "
        f"of {len(prices.bars.symbols)} assets; {exactly(plan.trials)} trials: "
        f"{len(plan.settings)} settings of {plan.seeds} seeds."
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
    notes = (f"{type(prices).__name__}: {note_of(prices)}", CAVEAT)
    note = element("ul", [element("li", text) for text in notes])
    note = element("div", note, class_="notes")
    return page.page(title, [element("p", lead), note], known, "walkforward")


def note_of(prices: Prices) -> str:
    """What is to be known of where prices come from, in the words of their class.

    >>> from ppo_jax.envs.trading import RandomWalk
    >>> note_of(RandomWalk()).split(":")[0]
    'Driftless geometric random walks'
    """
    text = inspect.getdoc(type(prices)) or ""
    about = re.split(r"\n(?:Attributes|Raises|Args|>>>)", text)[0]
    return " ".join(about.split())

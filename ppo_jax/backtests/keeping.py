"""Files that a walk-forward leaves in its directory: numbers, tracks and a page."""

import csv
import io
from pathlib import Path

import numpy as np

from ppo_jax.backtests import measures, page, summary
from ppo_jax.backtests.results import Account, Results, conditions
from ppo_jax.host.process import tables
from ppo_jax.host.run_dir import files
from ppo_jax.host.run_dir.names import BACKTEST, BACKTEST_PAGE, EQUITY
from ppo_jax.reports.scales import written

COLUMNS = ("CAGR", "Sharpe", "max drawdown", "CVaR 5 %", "turnover")


def write(run_dir: Path, results: Results) -> str:
    """Writes all that there is to say; returns it in short, for a terminal."""
    numbers = summary.as_json(results)
    files.write_json(run_dir / BACKTEST, numbers)
    files.write(run_dir / EQUITY, tracks(results))
    files.write(run_dir / BACKTEST_PAGE, page.of(str(run_dir), results, numbers))
    header = ("who", "cost", *COLUMNS, "deflated")
    table = tables.aligned(header, [_row(each) for each in _everybody(numbers)])
    return "".join([table, *(f"\n{note}\n" for note in summary.notes(numbers))])


def tracks(results: Results) -> str:
    """Returns equity over time as CSV: a row per bar, a column per track."""
    accounts = [each.account for each in results.agents] + results.baselines
    names = [name for account in accounts for name in _names(account)]
    columns = np.concatenate([measures.equity(x.returns)[:, 1:] for x in accounts])
    text = io.StringIO()
    rows = csv.writer(text, lineterminator="\n")
    rows.writerow(["time", *names])
    for time, values in zip(results.times, columns.T, strict=True):
        rows.writerow([str(time)[:19], *(f"{value:.9g}" for value in values)])
    return text.getvalue()


def _names(account: Account) -> list[str]:
    """Returns the names of an account's tracks."""
    count = len(account.returns)
    name = f"{account.name}, {account.conditions}"
    return [name] if count == 1 else [f"{name}, seed {i}" for i in range(count)]


def _everybody(numbers: dict) -> list[dict]:
    return [*numbers["agents"], *numbers["baselines"]]


def _row(each: dict) -> list[str]:
    medians = [written(each["figures"][name]["median"]) for name in COLUMNS]
    luck = each.get("deflated")
    known = "" if luck is None else written(measures.median(luck))
    paid = conditions(each["cost"], each["market"])
    return [each["name"], paid, *medians, known]

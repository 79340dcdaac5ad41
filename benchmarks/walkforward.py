"""What do agents earn on prices that nobody has seen before?

    python benchmarks/walkforward.py
    python benchmarks/walkforward.py --table

The first walks `experiments/walkforward.py` forward, five folds of four seeds at two
costs, each with its term about risk and without it; it needs the extra `market`. Both
print the table of what is kept: medians over seeds, and the Sharpe ratio of each.
"""

import argparse
import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import records

from ppo_jax import walkforward

HERE = Path(__file__).parent
EXPERIMENT = HERE.parent / "experiments" / "walkforward.py"
ASKED = ("--folds", "5", "--seeds", "4", "--grid", "env.cost=5,20")
COLUMNS = {
    "CAGR": 100,
    "Sharpe": 1,
    "max drawdown": 100,
    "CVaR 5 %": 100,
    "turnover": 1,
}
"""Measures, and what they are multiplied by: percentages of shares."""


def main() -> None:
    """Walks forward, and prints the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--table", action="store_true", help="train nothing")
    parser.add_argument("--run-dir", type=Path, default=Path("runs/walkforward"))
    results = HERE / "results/walkforward.json"
    parser.add_argument("--results", type=Path, default=results)
    options = parser.parse_args()
    if not options.table:
        begin = time.perf_counter()
        line = [str(EXPERIMENT), *ASKED, "--run-dir", str(options.run_dir)]
        if walkforward.main(line):
            raise SystemExit(1)
        keep(options.results, options.run_dir, time.perf_counter() - begin)
    print("\n".join(table(records.read(options.results))))


def keep(results: Path, run_dir: Path, seconds: float) -> None:
    """Keeps what a walk-forward says of everybody."""
    said = json.loads((run_dir / "backtest.json").read_text())
    settings = {
        "experiment": f"experiments/{EXPERIMENT.name}",
        "options": " ".join(ASKED),
        "trials": said["trials"],
        "bars": said["bars"],
        "seconds": round(seconds),
    }
    rows = [row(each) for each in [*said["agents"], *said["baselines"]]]
    records.write(results, settings, rows)


def row(each: dict[str, Any]) -> dict[str, Any]:
    """What is kept of an account."""
    figures = {name: each["figures"][name]["median"] for name in COLUMNS}
    figures = {
        name: None if value is None else round(COLUMNS[name] * value, 2)
        for name, value in figures.items()
    }
    deflated = each.get("deflated")
    return {
        "who": each["name"],
        "cost": each["cost"],
        **figures,
        "Sharpe of each": [
            None if ratio is None else round(ratio, 2)
            for ratio in each["figures"]["Sharpe"]["each"]
        ],
        "deflated": None if deflated is None else round(max(deflated), 3),
        "even": [round(cost, 1) for cost in each.get("even_cash", [])],
    }


def table(record: dict[str, Any]) -> Iterator[str]:
    """Lines of a markdown table, below one that says how it was measured."""
    names = [f"{name}, %" if unit == 100 else name for name, unit in COLUMNS.items()]
    yield records.caption(record)
    yield ""
    yield (
        f"| who | cost, bp | {' | '.join(names)} | Sharpe of each seed | deflated, the "
        "best seed's | breaks even with cash, bp |"
    )
    yield f"|---|--:{'|--:' * len(names)}|---|--:|---|"
    for row in record["rows"]:
        cells = [row["who"], number(row["cost"])]
        cells += [number(row[name]) for name in COLUMNS]
        cells += [each(row["Sharpe of each"]), number(row["deflated"])]
        yield f"| {' | '.join([*cells, each(row['even'])])} |"


def each(values: list[float | None]) -> str:
    """Several numbers."""
    return " ".join(map(number, values))


def number(value: float | None) -> str:
    """A number for readers; of nothing, a dash.

    >>> number(-12.5), number(None)
    ('−12.5', '–')
    """
    return "–" if value is None else f"{value:.10g}".replace("-", "−")


if __name__ == "__main__":
    main()

"""What do agents earn on prices that nobody has seen before?

    python benchmarks/walkforward.py
    python benchmarks/walkforward.py --table

The first walks `experiments/walkforward.py` forward, five folds of twenty seeds at two
costs, each with its term about risk and without it; it needs the extra `market`. Both
print the tables of what is kept: what everybody earned and risked, what the term about
risk changes from seed to seed, and how much of it may be luck.
"""

import argparse
import functools
import json
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import records

from ppo_jax import walkforward
from ppo_jax.sweeps import aggregate

HERE = Path(__file__).parent
EXPERIMENT = HERE.parent / "experiments" / "walkforward.py"
ASKED = ("--folds", "5", "--seeds", "20", "--grid", "env.cost=5,20")
MEASURES = {
    "CAGR": 100,
    "Sharpe": 1,
    "max drawdown": 100,
    "CVaR 5 %": 100,
    "turnover": 1,
}
"""Those that are kept, and what they are multiplied by: percentages of shares."""
EVEN = "breaks even with cash"
LUCK = {"over_market": "buy & hold", "over_control": "its trades elsewhere"}
"""Whose Sharpe ratio agents' are compared with, by the name of the interval."""


def main() -> None:
    """Walks forward, and prints the tables."""
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
    """Keeps what a walk-forward says of everybody who trades."""
    said = json.loads((run_dir / "backtest.json").read_text())
    settings = {
        "experiment": f"experiments/{EXPERIMENT.name}",
        "options": " ".join(ASKED),
        "trials": said["trials"],
        "bars": said["bars"],
        "seconds": round(seconds),
    }
    rows = [of_agents(each) for each in said["agents"]]
    rows += [row(each) for each in said["baselines"] if each["name"] != "cash"]
    records.write(results, settings, rows)


def of_agents(each: dict[str, Any]) -> dict[str, Any]:
    """What is kept of the agents of a setting, by seed and of all of them."""
    return row(each) | {
        EVEN: rounded(each["even_cash"]),
        "deflated": round(max(each["deflated"]), 3),
        **{name: rounded(each[name]) for name in LUCK},
    }


def row(each: dict[str, Any]) -> dict[str, Any]:
    """What is kept of an account: measures, of each of its tracks."""
    figures = {
        name: rounded(unit * x for x in each["figures"][name]["each"])
        for name, unit in MEASURES.items()
    }
    return {"who": each["name"], "cost": each["cost"], **figures}


def rounded(values: Iterable[float]) -> list[float]:
    """As many digits as anybody reads, and two more."""
    return [round(value, 4) for value in values]


def table(record: dict[str, Any]) -> Iterator[str]:
    """Lines of three markdown tables, below one that says how it was measured."""
    agents = [row for row in record["rows"] if EVEN in row]
    units = [f"{name}, %" if unit == 100 else name for name, unit in MEASURES.items()]
    names = [*units, f"{EVEN}, bp"]
    yield records.caption(record)
    yield ""
    yield from header("who", "cost, bp", *names)
    for row in record["rows"]:
        yield line(row, *(middle(row.get(name)) for name in (*MEASURES, EVEN)))
    yield ""
    yield from header("with the term less without it, cost, bp", *names)
    for ours, theirs in zip(agents[::2], agents[1::2], strict=True):
        gaps = (gap(ours[name], theirs[name]) for name in (*MEASURES, EVEN))
        yield f"| {number(ours['cost'])} | {' | '.join(gaps)} |"
    yield ""
    over = [f"Sharpe less that of {name}" for name in LUCK.values()]
    yield from header("agents", "cost, bp", *over, "deflated, the best seed's")
    for row in agents:
        ends = (" to ".join(map(number, row[name])) for name in LUCK)
        yield line(row, *ends, f"{row['deflated']:.3f}")


def header(first: str, *names: str) -> Iterator[str]:
    """The two lines above a table."""
    yield f"| {' | '.join([first, *names])} |"
    yield f"|---|{'--:|' * len(names)}"


def line(row: dict[str, Any], *cells: str) -> str:
    """A line about an account."""
    return f"| {' | '.join([row['who'], number(row['cost']), *cells])} |"


def middle(values: Sequence[float] | None) -> str:
    """The median over seeds with its interval; of a single track, its number."""
    if values is None:
        return "–"
    if len(values) == 1:
        return number(values[0])
    return estimate(np.median, tuple(values))


def gap(ours: Sequence[float], theirs: Sequence[float]) -> str:
    """The mean over seeds of what one has more than the other, with its interval."""
    return estimate(np.mean, tuple(np.subtract(ours, theirs)))


@functools.cache
def estimate(statistic: Callable[..., Any], values: tuple[float, ...]) -> str:
    """A statistic over seeds, and what it is over seeds that are drawn anew, 95 %."""
    each = np.array(values)[:, None]
    ends = aggregate.interval(lambda x: statistic(x[..., 0], axis=-1), each)
    low, high = map(number, ends)
    return f"{number(statistic(values))} ({low} to {high})"


def number(value: float) -> str:
    """A number for readers.

    >>> number(-12.5), number(-0.0046512), number(5.0)
    ('−12.5', '−0.00465', '5')
    """
    return f"{value:.3g}".replace("-", "−")


if __name__ == "__main__":
    main()

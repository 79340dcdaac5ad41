"""Runs the benchmark scripts in turns and prints one table of medians.

Every library runs in a process of its own, under its own Python, and the libraries
take turns (A B C A B C ...), so that whatever else the machine does hits all alike.
Each run's line of JSON goes to stderr, the table to stdout.

    compare.py --python ours=PATH purejaxrl=PATH rejax=PATH --source purejaxrl=DIR
"""

import argparse
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from statistics import median
from typing import Any

from measure import ROLLOUT_LENGTH, last_line

HERE = Path(__file__).parent
SCRIPTS = {
    "ours": HERE / "ours.py",
    "purejaxrl": HERE / "peer_purejaxrl.py",
    "rejax": HERE / "peer_rejax.py",
}
FEWEST_UPDATES = 4

Run = dict[str, Any]
Runs = dict[tuple[int, str], list[Run | None]]


def parse_arguments() -> argparse.Namespace:
    """Returns the command line, with `NAME=VALUE` pairs as dictionaries."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--python", nargs="+", required=True, type=pair, help="NAME=interpreter"
    )
    parser.add_argument(
        "--source", nargs="*", default=[], type=pair, help="NAME=checkout"
    )
    parser.add_argument("--num-envs", nargs="+", type=int, default=[4, 64, 2048])
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument(
        "--steps", type=int, default=1_000_000, help="environment steps in a run"
    )
    parser.add_argument("--timeout", type=float, default=600.0, help="seconds a run")
    parser.add_argument("--recurrent", action="store_true")
    arguments = parser.parse_args()
    arguments.python = dict(arguments.python)
    arguments.source = dict(arguments.source)
    unknown = sorted({*arguments.python, *arguments.source} - SCRIPTS.keys())
    if unknown:
        parser.error(f"unknown library {unknown}; known are {sorted(SCRIPTS)}")
    return arguments


def pair(text: str) -> tuple[str, str]:
    """Splits `NAME=VALUE`."""
    name, separator, value = text.partition("=")
    if not (name and separator and value):
        raise argparse.ArgumentTypeError(f"expected NAME=VALUE, got {text!r}")
    return name, value


def run_all(arguments: argparse.Namespace) -> Runs:
    """Runs everything; a run that failed is None, to keep the rounds aligned."""
    runs: Runs = {}
    for num_envs in arguments.num_envs:
        for _ in range(arguments.repeats):
            for name in arguments.python:
                result = run_once(name, num_envs, arguments)
                runs.setdefault((num_envs, name), []).append(result)
    return runs


def run_once(name: str, num_envs: int, arguments: argparse.Namespace) -> Run | None:
    """Returns what one script printed, or None if it failed or hung."""
    updates = max(FEWEST_UPDATES, arguments.steps // (num_envs * ROLLOUT_LENGTH))
    command = [arguments.python[name], str(SCRIPTS[name])]
    command += ["--num-envs", str(num_envs), "--updates", str(updates)]
    if name in arguments.source:
        command += ["--source", arguments.source[name]]
    if arguments.recurrent:
        command += ["--recurrent"]
    line = last_line(command, arguments.timeout)
    if line is None:
        return None
    print(line, file=sys.stderr, flush=True)
    return json.loads(line)


def table(runs: Runs) -> Iterator[str]:
    """Yields the lines of the markdown table."""
    yield "| envs | library | steps/s (min to max) | x ours | compile, s | RSS, MiB |"
    yield "|--:|---|--:|--:|--:|--:|"
    for (num_envs, name), results in runs.items():
        done = [run for run in results if run is not None]
        if not done:
            yield f"| {num_envs} | {name} | - | - | - | - |"
            continue
        speeds = [run["steps_per_second"] for run in done]
        spread = f"{median(speeds):,.0f} ({min(speeds):,.0f} to {max(speeds):,.0f})"
        ratio = ratio_to_ours(results, runs.get((num_envs, "ours"), []))
        compile_seconds = median(run["compile_seconds"] for run in done)
        rss = median(run["peak_rss_mib"] for run in done)
        yield (
            f"| {num_envs} | {name} | {spread} | {ratio}"
            f" | {compile_seconds:.1f} | {rss:.0f} |"
        )


def ratio_to_ours(results: list[Run | None], ours: list[Run | None]) -> str:
    """Returns the median over the rounds of this library's speed over ours."""
    ratios = [
        run["steps_per_second"] / our_run["steps_per_second"]
        for run, our_run in zip(results, ours, strict=False)
        if run is not None and our_run is not None
    ]
    return f"{median(ratios):.2f}" if ratios else "-"


def main() -> None:
    """Runs the comparison."""
    for line in table(run_all(parse_arguments())):
        print(line)


if __name__ == "__main__":
    main()

"""Does every experiment compile for a GPU and for a TPU, and for how much memory?

    python benchmarks/compiled.py --python h100=PATH v4=PATH
    python benchmarks/compiled.py --table

Neither is there: a compiler needs only the JAX of its device, which the interpreter at
PATH has. The first compiles all programs of a run as they are, each experiment in a
process of its own: those that make its members, train, evaluate and, of a population,
change them. Both print the table of what is kept: the MiB that each program needs on
the device, with its arguments and results.
"""

import argparse
import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jax
import numpy as np
import records
from deviceless import DEVICES, OPTIONS

from ppo_jax.host.devices import streams
from ppo_jax.host.devices.mesh import Layout
from ppo_jax.host.loop import readiness, training
from ppo_jax.host.run_dir import experiment

HERE = Path(__file__).parent
FOLDER = HERE.parent / "experiments"
PROGRAMS = ("making", "training", "evaluation", "generation")
SETTINGS = {"timeout_seconds": 1800}
MIB = 2**20


def main() -> None:
    """Compiles all experiments for all devices, and prints the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    pair = {"type": lambda text: text.split("=", 1), "metavar": "DEVICE=PATH"}
    parser.add_argument("--python", nargs="+", default=[], **pair)
    parser.add_argument("--one", nargs=2, metavar=("EXPERIMENT", "DEVICE"))
    parser.add_argument("--table", action="store_true", help="compile nothing")
    results = HERE / "results/compiled.json"
    parser.add_argument("--results", type=Path, default=results)
    options = parser.parse_args()
    if options.one:
        print(json.dumps(needs(*options.one)))
        return
    if not options.table:
        rows: list[dict[str, Any]] = []
        for row in measure(dict(options.python)):
            rows.append(row)
            records.write(options.results, SETTINGS, rows)
    print("\n".join(table(records.read(options.results))))


def measure(pythons: dict[str, str]) -> Iterator[dict[str, Any]]:
    """What programs of every experiment need, by device; None: it is not compiled."""
    for path in sorted(FOLDER.glob("*.py")):
        text = path.read_text()
        if "\nconfig = " not in text or "gymnasium/" in text:
            continue  # A loop of its own, or simulators between its programs.
        row: dict[str, Any] = {"experiment": path.stem}
        for device, python in pythons.items():
            row[device] = compiled(python, path.stem, device)
            print(json.dumps(row), file=sys.stderr, flush=True)
        yield row


def compiled(python: str, name: str, device: str) -> dict[str, float] | None:
    """What `needs` returns in a process of its own."""
    command = [python, __file__, "--one", name, device]
    limit = SETTINGS["timeout_seconds"]
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, check=True, timeout=limit
        )
    except subprocess.SubprocessError as error:
        print(f"{name} for {device}: {error}", error.stderr, file=sys.stderr)
        return None
    return json.loads(done.stdout.splitlines()[-1])


def needs(name: str, device: str) -> dict[str, float]:
    """The MiB of each program of an experiment on one device that is not there."""
    layout = Layout([DEVICES[device]()])
    config = experiment.load(FOLDER / f"{name}.py", [])
    shapes = jax.eval_shape(lambda: training.start(config))
    phase, episodes = readiness.needed(config, layout, shapes)
    programs = {
        "making": layout.making(training.start, config).lower(),
        "training": phase.lower(),
        "evaluation": episodes.lower(),
    }
    if config.pbt is not None:
        keys = jax.eval_shape(lambda: streams.generation(0, 1, config.num_members))
        given = config.pbt, layout.described(shapes), keys
        programs["generation"] = layout.evolve.lower(*given)
    return {kind: mib(x.compile(OPTIONS[device])) for kind, x in programs.items()}


def mib(program: Any) -> float:
    """What a compiled program needs of its device."""
    sizes = program.memory_analysis()
    both = sizes.argument_size_in_bytes + sizes.output_size_in_bytes
    whole = both + sizes.temp_size_in_bytes - sizes.alias_size_in_bytes
    return float(np.round(whole / MIB, 1))


def table(record: dict[str, Any]) -> Iterator[str]:
    """Lines of a markdown table, below one that says how it was measured."""
    yield records.caption(record)
    yield ""
    found = [device for device in DEVICES if device in record["rows"][0]]
    kinds = ", ".join(PROGRAMS)
    yield f"| experiment | {' | '.join(f'{device}: {kinds}' for device in found)} |"
    yield "|---" * (1 + len(found)) + "|"
    for row in record["rows"]:
        cells = " | ".join(cell(row[device]) for device in found)
        yield f"| {row['experiment']} | {cells} |"


def cell(programs: dict[str, float] | None) -> str:
    """The MiB of programs, in their order."""
    if programs is None:
        return "not compiled"
    return " ".join(f"{programs[kind]:,}" for kind in PROGRAMS if kind in programs)


if __name__ == "__main__":
    main()

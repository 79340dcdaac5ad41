"""Runs a suite of benchmarks, or makes the document of what was kept.

    python -m benchmarks.run --suite cpu \
        --python purejaxrl=PATH rejax=PATH --source purejaxrl=DIR
    python -m benchmarks.run --table

Every contestant of a job runs as a process of its own, all of them round by round, in
turns, and the other way about in odd rounds: whatever else the machine does hits all
alike. A run that has ended is kept at once, as a line of JSON; one that is kept is not
run again, so that a suite which was stopped goes on. One that hangs, or has too
little memory, is kept as such. Libraries whose interpreter is not given are left out.
"""

import argparse
import json
import math
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from benchmarks import accelerators, document, machine
from benchmarks.document import Line
from benchmarks.suites import SUITES, Contestant, Job
from ppo_jax.arrays import devices
from ppo_jax.host.run_dir import files

HERE = Path(__file__).parent
LIBRARIES = ("ours", "purejaxrl", "rejax", "evorl")
OF_CACHES = ("JAX_COMPILATION_CACHE", "JAX_PERSISTENT_CACHE", "JAX_ENABLE_COMPILATION")
"""How variables begin that would have programs read instead of compiled."""
WIDE = "--xla_cpu_prefer_vector_width=512"
TOO_LARGE = re.compile("RESOURCE_EXHAUSTED|out of memory|MemoryError|bad_alloc", re.I)
"""What a process says that wants more memory than there is."""


class Turn(NamedTuple):
    """One run of one contestant."""

    round: int
    job: Job
    contestant: Contestant
    device: str | None = None
    """What it is to run on; None: whatever there is."""

    @property
    def identity(self) -> dict[str, Any]:
        """What a line says of it, and by what a kept one is known."""
        known = {
            "job": self.job.title,
            "library": self.contestant.name,
            "round": self.round,
            "command": self.command,
        }
        return known if self.device is None else known | {"device": self.device}

    def is_kept(self, lines: list[Line]) -> bool:
        """Whether there is a line of it."""
        return any(self.identity.items() <= line.items() for line in lines)

    def repeats(self, line: Line) -> bool:
        """Whether a line is of the same, in whatever round."""
        fixed = {k: v for k, v in self.identity.items() if k != "round"}
        return fixed.items() <= line.items()

    @property
    def command(self) -> str:
        """The script and its options."""
        return self.job.command(self.contestant)


def parse_arguments(argv: list[str] | None = None) -> argparse.Namespace:
    """Returns the command line, with `NAME=VALUE` pairs as dictionaries."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.run",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--suite", choices=SUITES, default="cpu")
    parser.add_argument("--only", type=pattern, default="", help="jobs by their title")
    parser.add_argument("--rounds", type=rounds, help="others than the suite's")
    parser.add_argument(
        "--python", nargs="+", default=[], type=pair, help="NAME=interpreter"
    )
    parser.add_argument(
        "--source", nargs="+", default=[], type=pair, help="NAME=checkout"
    )
    parser.add_argument("--timeout", type=seconds, default=900.0, help="of a run")
    parser.add_argument(
        "--cache",
        type=lambda text: Path(text).absolute(),
        help="folder in which programs are kept and found, where time on a device is "
        "dear; how long it takes to compile them is then not told",
    )
    parser.add_argument("--fresh", action="store_true", help="forget what was kept")
    parser.add_argument("--table", action="store_true", help="make the document only")
    kept = HERE / "results" / "performance.jsonl"
    parser.add_argument("--results", type=file, default=kept)
    shown = HERE.parent / "docs" / "performance.md"
    parser.add_argument("--document", type=file, default=shown)
    arguments = parser.parse_args(argv)
    arguments.python = {"ours": sys.executable, **dict(arguments.python)}
    arguments.source = dict(arguments.source)
    unknown = sorted({*arguments.python, *arguments.source} - {*LIBRARIES})
    if unknown:
        parser.error(f"unknown library {unknown}; known are {sorted(LIBRARIES)}")
    for name, path in arguments.python.items():
        if shutil.which(path) is None:
            parser.error(f"--python: no interpreter {path!r} for {name}")
    if not any(arguments.only.search(job.title) for job in SUITES[arguments.suite].all):
        parser.error(f"--only: no job of the suite {arguments.suite!r} is called so")
    if arguments.table and not arguments.results.exists():
        parser.error(f"--results: nothing was kept in {arguments.results}")
    return arguments


def rounds(text: str) -> int:
    """A number of rounds."""
    if not (text.isdecimal() and int(text)):
        raise argparse.ArgumentTypeError(f"expected at least 1, got {text!r}")
    return int(text)


def seconds(text: str) -> float:
    """A time to wait."""
    if not 0 < float(text) < math.inf:
        raise argparse.ArgumentTypeError(f"expected seconds above 0, got {text!r}")
    return float(text)


def file(text: str) -> Path:
    """A file, which may not be there yet."""
    path = Path(text)
    if path.is_dir():
        raise argparse.ArgumentTypeError(f"expected a file, got the folder {text!r}")
    return path


def pair(text: str) -> tuple[str, str]:
    """Splits `NAME=VALUE`."""
    name, separator, value = text.partition("=")
    if not (name and separator and value):
        raise argparse.ArgumentTypeError(f"expected NAME=VALUE, got {text!r}")
    return name, value


def pattern(text: str) -> re.Pattern:
    """A regular expression."""
    try:
        return re.compile(text)
    except re.error as error:
        raise argparse.ArgumentTypeError(f"{text!r}: {error}") from error


def turns(arguments: argparse.Namespace) -> Iterator[Turn]:
    """All runs of a suite, in their order.

    Raises:
        Elsewhere: If some want a GPU or TPU, and ours has none.
    """
    suite = SUITES[arguments.suite]
    chosen = [job for job in suite.all if re.search(arguments.only, job.title)]
    device = None
    if any(job.accelerated for job in chosen):
        device = machine.accelerator(arguments.python["ours"], HERE)
    for number in range(arguments.rounds or suite.rounds):
        for job in chosen:
            if job.rounds is not None and number >= job.rounds:
                continue
            there = [x for x in job.contestants if x.owner in arguments.python]
            for contestant in there[:: -1 if number % 2 else 1]:
                place = device if job.accelerated else None
                yield Turn(number, job, contestant, place)


def run(arguments: argparse.Namespace) -> bool:
    """Does what is not kept yet, and keeps it; whether every run came to its end."""
    lines, wanted = files.rows(arguments.results), list(turns(arguments))
    if arguments.fresh:
        lines = [x for x in lines if not any(turn.repeats(x) for turn in wanted)]
    keep_only(arguments.results, lines)
    due = [turn for turn in wanted if not turn.is_kept(lines)]
    failed = 0
    for done, turn in enumerate(due, start=1):
        load = os.getloadavg()[0]
        print(f"{done}/{len(due)} {turn.job.title}: {turn.contestant.name}", end=" ")
        sys.stdout.flush()
        try:
            measured = measure(turn, arguments)
        except subprocess.SubprocessError as error:
            why = lost(error)
            failed += why != "out_of_memory"
            if why is None:
                print(f"failed: {error}\n{error.stderr or ''}", flush=True)
                continue
            measured = {why: True, "versions": {}}
        keep(arguments.results, turn.identity | circumstances(load) | measured)
        print(document.figures(measured), flush=True)
    return not failed


def measure(turn: Turn, arguments: argparse.Namespace) -> dict[str, Any]:
    """What one script said of itself, in its last line, and how long its process took.

    Raises:
        SubprocessError: If it failed or hung, or ran on another device.
    """
    owner = turn.contestant.owner
    script, *options = turn.command.split()
    command = [arguments.python[owner], str(HERE / script), *options]
    if owner in arguments.source:
        command += ["--source", arguments.source[owner]]
    if turn.job.pinned:
        command = ["taskset", "-c", str(min(os.sched_getaffinity(0))), *command]
    shared = None if turn.job.whole else arguments.cache
    with tempfile.TemporaryDirectory() as cache:
        for _ in range(1 + turn.job.warm):
            began = time.perf_counter()
            done = subprocess.run(
                command,
                timeout=arguments.timeout,
                capture_output=True,
                text=True,
                check=True,
                env=environment(turn, str(shared or cache), bool(shared)),
            )
            took = time.perf_counter() - began
    said = json.loads(done.stdout.splitlines()[-1])
    if turn.device is not None:
        machine.require_device(said["device"], turn.device)
    said["process_seconds"] = round(took, 1)
    if shared:
        said.pop("compile_seconds", None)
    return of_all(said, took) if turn.job.whole else said


def of_all(said: dict[str, Any], seconds: float) -> dict[str, Any]:
    """What a script said, with the speed of its whole process.

    >>> of_all({"seconds": 2.0, "steps_per_second": 10}, 4.0)
    {'seconds': 4.0, 'steps_per_second': 5}
    """
    steps = said["seconds"] * said["steps_per_second"]
    whole = {"seconds": round(seconds, 3), "steps_per_second": round(steps / seconds)}
    return said | whole


def lost(error: subprocess.SubprocessError) -> str | None:
    """Why a run has no figures, if that is one.

    It hung, or had too little memory: by its own words, or killed for it.
    """
    if isinstance(error, subprocess.TimeoutExpired):
        return "hung"
    if not isinstance(error, subprocess.CalledProcessError):
        return None
    killed = error.returncode == -signal.SIGKILL
    return "out_of_memory" if killed or TOO_LARGE.search(error.stderr) else None


def environment(turn: Turn, cache: str, shared: bool = False) -> dict[str, str]:
    """Programs are compiled anew, unless a job is warm or all runs share a cache.

    Ours is imported from this checkout. Its modules are kept compiled, as those of
    libraries are that were installed.
    All have the widest vectors, as ours has by itself. Batched factorisations block the
    threads of XLA's pool until others are done: with as many threads as cores, vmapped
    training of purejaxrl waits for ever. Ours has none; others are given a thread more.
    """
    kept = {k: v for k, v in os.environ.items() if not k.startswith(OF_CACHES)}
    kept.pop("PYTHONDONTWRITEBYTECODE", None)
    kept["PYTHONPATH"] = str(HERE.parent)
    if turn.job.whole and turn.contestant.owner == "ours":
        kept["XDG_CACHE_HOME"] = cache  # It has a cache by itself, empty at first.
    elif turn.job.warm or shared:
        kept["JAX_COMPILATION_CACHE_DIR"] = cache
        kept["JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS"] = "0"
    else:
        kept["JAX_ENABLE_COMPILATION_CACHE"] = "0"
    kept["XLA_FLAGS"] = " ".join(filter(None, (kept.get("XLA_FLAGS"), WIDE)))
    if turn.contestant.owner != "ours" and "--members" in turn.job.options:
        kept["NPROC"] = str(1 + (1 if turn.job.pinned else devices.cores()))
    return machine.on_one_device(kept) if turn.job.accelerated else kept


def circumstances(load: float) -> dict[str, Any]:
    """What a result depends on besides its command."""
    changed = "+" if git("status", "--porcelain", "--", "../ppo_jax") else ""
    return {
        "commit": git("rev-parse", "--short", "HEAD") + changed,
        "machine": f"{devices.cores()} cores of {machine.processor()}",
        "load": round(load, 2),
    }


def git(*words: str) -> str:
    """What git says of this checkout; nothing where there is none."""
    command = ["git", "-C", str(HERE), *words]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    return done.stdout.strip()


def keep(path: Path, line: dict[str, Any]) -> None:
    """Appends a line."""
    with path.open("a") as file:
        file.write(json.dumps(line, allow_nan=False) + "\n")


def keep_only(path: Path, lines: list[dict[str, Any]]) -> None:
    """Drops all other lines, and what is left of one that was cut off."""
    path.parent.mkdir(parents=True, exist_ok=True)
    files.write(path, "".join(json.dumps(line) + "\n" for line in lines))


def main(argv: list[str] | None = None) -> int:
    """Runs a suite, or makes the document."""
    arguments = parse_arguments(argv)
    if not arguments.table:
        try:
            return 0 if run(arguments) else 1
        except machine.Elsewhere as error:
            sys.exit(f"error: ours {error}")
    lines = files.rows(arguments.results)
    files.write(arguments.document, documented(arguments.suite, lines))
    return 0


def documented(name: str, lines: list[dict[str, Any]]) -> str:
    """The document of a suite; tables that it has no jobs for are those of others."""
    suite = SUITES[name]
    jobs = suite.jobs or SUITES["cpu"].jobs
    gpus = (*SUITES["gpu"].accelerated, *SUITES["absent"].accelerated)
    accelerated = (suite.jobs and suite.accelerated) or gpus
    endured = suite.endured or SUITES["soak"].endured
    there, here = parted(lines, accelerated)
    long, here = parted(here, endured)
    tables = {
        "accelerators": accelerators.tables(accelerated, there),
        "soak": document.endurance(endured, long),
    }
    return document.text(jobs, here, tables)


def parted(lines: list[Line], jobs: tuple[Job, ...]) -> tuple[list[Line], list[Line]]:
    """Those of some jobs, and all others."""
    titles = {job.title for job in jobs}
    theirs = [line for line in lines if line["job"] in titles]
    return theirs, [line for line in lines if line["job"] not in titles]


if __name__ == "__main__":
    sys.exit(main())

"""What every script of this folder accepts, measures and prints.

The module needs nothing but JAX, so that it runs in each peer's own environment.
"""

import argparse
import json
import resource
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import jax

ROLLOUT_LENGTH = 128


@dataclass(frozen=True)
class Timing:
    """The output of a program, and what it took to get it.

    Attributes:
        output: What the program returned.
        compile_seconds: Time to trace, lower and compile it.
        seconds: Time to execute it once, until the output is ready.
    """

    output: Any
    compile_seconds: float
    seconds: float


def argument_parser(description: str) -> argparse.ArgumentParser:
    """Returns the command line which all the scripts share."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--num-envs", type=int, default=64)
    parser.add_argument("--updates", type=int, default=100)
    parser.add_argument("--recurrent", action="store_true")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--source", help="folder with a checkout of the library")
    return parser


def measure(program: Callable[..., Any], *arguments: Any) -> Timing:
    """Compiles `program` ahead of time, then executes it once."""
    start = time.perf_counter()
    compiled = jax.jit(program).lower(*arguments).compile()
    compiled_at = time.perf_counter()
    output = jax.block_until_ready(compiled(*arguments))
    return Timing(
        output=output,
        compile_seconds=compiled_at - start,
        seconds=time.perf_counter() - compiled_at,
    )


def last_line(
    command: list[str], timeout: float, environment: Mapping[str, str] | None = None
) -> str | None:
    """Runs a script; returns the last line it printed, or None if it failed or hung.

    Args:
        command: The interpreter, the script and its options.
        timeout: Seconds after which it counts as hanging.
        environment: Its variables; None: those of this process.
    """
    try:
        done = subprocess.run(
            command,
            timeout=timeout,
            capture_output=True,
            text=True,
            check=True,
            env=environment,
        )
    except subprocess.TimeoutExpired:
        print(f"{' '.join(command)}: timed out", file=sys.stderr)
        return None
    except subprocess.CalledProcessError as error:
        print(f"{' '.join(command)}: failed\n{error.stderr}", file=sys.stderr)
        return None
    return done.stdout.splitlines()[-1]


def report(
    peer: str, arguments: argparse.Namespace, timing: Timing, mean_return: float
) -> None:
    """Prints one line of JSON, which `compare.py` reads.

    Args:
        peer: Name of the library.
        arguments: The parsed command line.
        timing: What `measure` returned.
        mean_return: Mean return of the trained agent: evidence that it learned.
    """
    steps = arguments.updates * ROLLOUT_LENGTH * arguments.num_envs
    peak_rss_kib = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    line = {
        "peer": peer,
        "num_envs": arguments.num_envs,
        "recurrent": arguments.recurrent,
        "steps": steps,
        "seconds": round(timing.seconds, 3),
        "steps_per_second": round(steps / timing.seconds),
        "compile_seconds": round(timing.compile_seconds, 3),
        "peak_rss_mib": round(peak_rss_kib / 1024),
        "mean_return": round(float(mean_return), 1),
        "jax": jax.__version__,
    }
    print(json.dumps(line), flush=True)

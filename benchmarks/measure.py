"""What every script of this folder accepts, measures and prints.

It needs nothing but JAX, and nor does what it imports from here: it runs in each peer's
own environment.
"""

import argparse
import json
import math
import platform
import resource
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import hlo
import jax
import numpy as np
from deviceless import UNTUNED, h100

ROLLOUT_LENGTH = 128
LAST = 5
"""Updates at the end of a run whose mean return is told."""


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


def argument_parser(description: str | None) -> argparse.ArgumentParser:
    """Returns the command line which all the scripts share."""
    parser = argparse.ArgumentParser(
        description=description, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--num-envs", type=int, default=64, help="of each member")
    parser.add_argument("--num-steps", type=int, default=ROLLOUT_LENGTH)
    parser.add_argument("--updates", type=int, default=100)
    parser.add_argument("--members", type=int, default=1, help="trained together")
    parser.add_argument("--recurrent", action="store_true")
    parser.add_argument(
        "--learning",
        action="store_true",
        help="keep all returns; constant learning rate, unbounded gradients",
    )
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--source", help="folder with a checkout of the library")
    return parser


def peer_parser(description: str | None) -> argparse.ArgumentParser:
    """The same for agents that train as one program, whose kernels can be counted."""
    parser = argument_parser(description)
    parser.add_argument(
        "--kernels", action="store_true", help="count those of an update, and no more"
    )
    return absent_too(parser)


def absent_too(parser: argparse.ArgumentParser) -> argparse.ArgumentParser:
    """Adds that kernels are those of a GPU that is not there."""
    parser.add_argument(
        "--absent", action="store_true", help="count for an H100 that is not there"
    )
    return parser


def generation_parser(description: str | None) -> argparse.ArgumentParser:
    """The same for populations that evolve every `--updates`."""
    parser = argument_parser(description)
    parser.set_defaults(members=8, num_envs=16, updates=10)
    parser.add_argument("--generations", type=int, default=3)
    parser.add_argument("--episodes", type=int, default=16, help="of an evaluation")
    return parser


def count(train: Callable[[jax.Array], Any], arguments: argparse.Namespace) -> None:
    """Prints how many kernels an update is, of one agent or of several."""
    start = time.perf_counter()
    device = h100() if arguments.absent else jax.devices()[0]
    where = jax.sharding.SingleDeviceSharding(device)
    members = () if arguments.members == 1 else (arguments.members,)
    key = jax.ShapeDtypeStruct((*members, 2), np.uint32, sharding=where)
    program = jax.jit(jax.vmap(train) if members else train, out_shardings=where)
    compiled = program.lower(key).compile(options(device))
    say_kernels(compiled, device, time.perf_counter() - start, arguments.updates)


def options(device: Any) -> dict[str, Any] | None:
    """Returns what a compiler has to be told about a device."""
    return None if device in jax.devices() else UNTUNED


def say_kernels(
    program: jax.stages.Compiled, device: Any, seconds: float, updates: int = 1
) -> None:
    """Prints how many kernels an update is, of a program of so many for a device.

    Args:
        program: What trains.
        device: A device, there or not.
        seconds: Time to trace, lower and compile all that training needs.
        updates: How many the program does.
    """
    line: dict[str, Any] = {"compile_seconds": round(seconds, 3)}
    if device not in jax.devices():
        line["device"] = f"{device.device_kind}, not there"
    say(line | {"kernels": round(hlo.kernels(program.as_text()) / updates)})


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


def of_members(
    train: Callable[[jax.Array], Any], arguments: argparse.Namespace
) -> Timing:
    """Trains one agent, or several with a key each as a single program."""
    keys = jax.random.split(jax.random.PRNGKey(arguments.seed), arguments.members)
    if arguments.members == 1:
        return measure(train, keys[0])
    return measure(jax.vmap(train), keys)


def mean_returns(total: Any, count: Any) -> np.ndarray:
    """Mean return of the episodes that ended in an update; NaN without any."""
    total, count = np.asarray(total, np.float64), np.asarray(count)
    return np.where(count > 0, total / np.maximum(count, 1), np.nan)


def report(
    arguments: argparse.Namespace, timing: Timing, returns: np.ndarray, **more: Any
) -> None:
    """Prints one line of JSON, which the suite keeps.

    Args:
        arguments: The parsed command line.
        timing: What it took.
        returns: Mean returns after each update, `[N, P]`; NaN where none is known.
        more: Anything else that was measured.
    """
    steps = arguments.num_steps * arguments.num_envs * arguments.members
    steps *= arguments.updates
    line = {
        "seconds": round(timing.seconds, 3),
        "steps_per_second": round(steps / timing.seconds),
        "compile_seconds": round(timing.compile_seconds, 3),
        "mean_return": average(returns[-LAST:].ravel()),
    }
    if arguments.learning:
        line["curves"] = [[rounded(x) for x in member] for member in returns.T]
    say(line | more)


def say(line: dict[str, Any]) -> None:
    """Prints what was measured, with what every process says of itself."""
    peak_rss_kib = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    versions = {"python": platform.python_version(), "jax": jax.__version__}
    every = {"peak_rss_mib": round(peak_rss_kib / 1024), "versions": versions}
    line = every | {"device": device()} | peak_of_the_device() | line
    print(json.dumps(line, allow_nan=False), flush=True)


def device() -> str:
    """Returns the kind of the devices, with their number if they are several.

    Devices of a CPU are its cores, of which each library makes what it likes.
    """
    first, *others = jax.devices()
    if others and first.platform != "cpu":
        return f"{1 + len(others)} × {first.device_kind}"
    return first.device_kind


def peak_of_the_device() -> dict[str, int]:
    """MiB that the first device has had in use at once; nothing where none is known."""
    known = jax.devices()[0].memory_stats() or {}
    peak = known.get("peak_bytes_in_use")
    return {} if peak is None else {"peak_device_mib": round(peak / 2**20)}


def average(numbers: Sequence[float]) -> float | None:
    """The mean of those that are numbers; None without any.

    >>> average([1.0, float("nan"), 2.0]), average([float("nan")])
    (1.5, None)
    """
    known = [x for x in numbers if not math.isnan(x)]
    return rounded(sum(known) / len(known)) if known else None


def rounded(number: float) -> float | None:
    """As it is kept: to a tenth; None if it is no number."""
    return None if math.isnan(number) else round(float(number), 1)

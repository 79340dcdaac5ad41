"""Who does the work of an update: our PPO on CartPole, by Linux's `perf`.

The process of a training run is sampled. The functions that are on the processor tell
what it does: products, what the library of products does around them, XLA's own work
between kernels, memory, or the kernels that XLA has compiled.
"""

import collections
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from breakdown import warmed
from measure import say
from ours import experiment, parser

from ppo_jax.arrays import devices

COMPILED = "kernels that XLA compiled"
OTHERS = "all else"
WORKS = (
    (COMPILED, "[JIT]", ""),
    (COMPILED, "libm.so", ""),
    ("products", "libjax_common.so", "ynn::dot_"),
    ("around products: copies, sums, scheduling", "libjax_common.so", "ynn"),
    ("around products: copies, sums, scheduling", "libjax_common.so", "slinky::"),
    ("XLA, between kernels", "libjax_common.so", ""),
    ("memory: got, freed, moved", "libc.so", ""),
)
"""By object file and what a function's name has in it: the first that fits."""
ATTACHING = 1.0
"""Seconds."""


def work_of(place, function):
    """The work that a function of an object file does.

    >>> work_of("libjax_common.so", "ynn::dot_fp32_5x64x1_1x16x1_avx512")
    'products'
    """
    fits = (w for w, file, name in WORKS if file in place and name in function)
    return next(fits, OTHERS)


def works(report):
    """Shares of samples by work, of lines `PERCENT%;OBJECT;[.] FUNCTION`.

    >>> works(" 75.00%;[JIT] tid 7;[.] 0x00007f3a")
    {'kernels that XLA compiled': 75.0}
    """
    found = collections.Counter()
    for line in report.splitlines():
        percent, *names = map(str.strip, line.split(";", 2))
        if len(names) == 2 and not line.startswith("#"):
            found[work_of(*names)] += float(percent.rstrip("%"))
    return {work: round(share, 1) for work, share in found.items()}


def sampled(run, frequency=2000):
    """Shares of what this process does while it runs something."""
    with tempfile.TemporaryDirectory() as folder:
        data = str(Path(folder, "perf.data"))
        record = ["perf", "record", "-q", "-F", str(frequency), "-o", data]
        with subprocess.Popen([*record, "-p", str(os.getpid())]) as perf:
            time.sleep(ATTACHING)
            run()
            perf.send_signal(signal.SIGINT)
        report = ["perf", "report", "-i", data, "--stdio", "--no-children"]
        form = ["--sort", "dso,symbol", "-t", ";"]
        return works(subprocess.check_output([*report, *form], text=True))


def main():
    """Prints a line of JSON."""
    if shutil.which("perf") is None:
        sys.exit("perf: expected Linux's profiler, as in the package linux-perf")
    arguments = parser().parse_args()
    devices.prepare()
    config = experiment(arguments)
    _, advance, members = warmed(config)
    began = time.perf_counter()
    members = advance(members)
    seconds = (time.perf_counter() - began) / config.num_updates
    say(
        {
            "seconds_per_update": seconds,
            "steps_per_second": round(config.steps_per_update / seconds),
            "works": sampled(lambda: advance(members)),
        }
    )


if __name__ == "__main__":
    main()

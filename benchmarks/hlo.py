"""Compiled programs, by their text: computations, instructions, and kernels.

A kernel is what a device is asked for at once: an operation, or several that were
fused. Those of a loop count as often as it runs; a loop of which the compiler does not
know that counts once. Of branches the longest counts.
"""

import functools
import re

COMPUTATION = re.compile(r"^(?:ENTRY )?%?([\w.\-]+) \(.*\{\n((?:.*\n)*?)\}", re.M)
INSTRUCTION = re.compile(r"^ +(?:ROOT )?%?([\w.\-]+) = (.*)$", re.M)
ENTRY = re.compile(r"^ENTRY %?([\w.\-]+)", re.M)
OPERATION = re.compile(r"\b([a-z][a-z0-9\-]*)\(")
"""What an instruction does; its type comes before, in which no such word is."""
TRIPS = re.compile(r'"known_trip_count":\{"n":"(\d+)"')
INSIDE = ("while", "call", "conditional")
"""Operations that are those of another computation."""
CALLED = re.compile(
    r"\b(?:body|to_apply|true_computation|false_computation)=(%?[\w.\-]+)"
    r"|\bbranch_computations=\{([^}]*)\}"
)
NOTHING = frozenset(
    {
        *("parameter", "constant", "tuple", "get-tuple-element", "bitcast"),
        *("after-all", "opt-barrier", "partition-id", "replica-id"),
        *("copy-done", "all-reduce-done", "all-gather-done", "async-done"),
        *("fusion-done",),
    }
)
"""Operations for which a device is asked for nothing."""


def kernels(text):
    """Kernels of a compiled program."""
    bodies = dict(COMPUTATION.findall(text))

    @functools.cache
    def of_all(computation):
        lines = INSTRUCTION.findall(bodies[computation])
        return sum(of_one(line) for _, line in lines)

    def of_one(line):
        (operation,) = OPERATION.search(line).groups()
        if operation not in INSIDE:
            return int(operation not in NOTHING)
        inside = [one or several for one, several in CALLED.findall(line)]
        names = ", ".join(inside).replace("%", "").split(", ")
        trips = TRIPS.search(line)
        most = max(map(of_all, names))
        return most * (int(trips[1]) if trips else 1)

    return of_all(ENTRY.search(text)[1])

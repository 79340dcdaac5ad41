"""Parents and numbers of members: one line of `lineage.jsonl` per generation.

The first line is the beginning. A member that was not copied over is its own parent, so
that its whole past is found by going from parent to parent.
"""

import base64
import itertools
import json
import zlib
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from ppo_jax.host.process import command
from ppo_jax.host.run_dir import files
from ppo_jax.host.run_dir.names import LINEAGE, SCHEDULE
from ppo_jax.host.run_dir.script import ExperimentError
from ppo_jax.ppo.population import Generation
from ppo_jax.types import Array

Schedule = list[tuple[int, dict[str, float]]]
"""Pairs of an update, and the numbers by path that are in force from then on."""


class Family:
    """Generations in memory.

    Args:
        lines: The generations so far.
    """

    def __init__(self, lines: Iterable[dict[str, Any]]):
        self.lines: list[dict[str, Any]] = []
        self._packed, self._packing = bytearray(), zlib.compressobj(level=1)
        for line in lines:
            self._add(line)

    def append(self, line: dict[str, Any]) -> None:
        """Adds a generation."""
        self._add(line)

    @property
    def packed(self) -> str:
        """All generations as a checkpoint has them; see `unpacked`.

        Each was compressed when it was added, so that thousands take no time to save.
        """
        rest = self._packing.copy().flush()
        return base64.b64encode(self._packed + rest).decode("ascii")

    def count(self, name: str) -> int:
        """Returns how many members `copied` or `explored`, over all generations."""
        return sum(sum(line[name]) for line in self.lines)

    def _add(self, line: dict[str, Any]) -> str:
        """Adds a generation; returns its line in a file."""
        text = json.dumps(line) + "\n"
        self.lines.append(line)
        self._packed += self._packing.compress(text.encode())
        return text


class Lineage(Family):
    """The lineage of a run directory.

    Args:
        run_dir: The run's directory.
        lines: The generations so far; later lines of the file are cut off.

    Raises:
        OSError: Here and in `append`, if the disk does not take it.
    """

    def __init__(self, run_dir: Path, lines: list[dict[str, Any]]):
        super().__init__(())
        self._path = run_dir / LINEAGE
        if lines:
            files.write(self._path, "".join(map(self._add, lines)))
        else:
            self._path.unlink(missing_ok=True)

    def append(self, line: dict[str, Any]) -> None:
        with self._path.open("a") as file:
            file.write(self._add(line))


def unpacked(lineage: str | list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Returns the generations of a checkpoint, which earlier versions left as they are.

    >>> first = beginning(2, {})
    >>> unpacked(Family([first]).packed) == unpacked([first]) == [first]
    True
    """
    if isinstance(lineage, list):
        return lineage
    texts = zlib.decompress(base64.b64decode(lineage)).splitlines()
    return [json.loads(text) for text in texts]


def beginning(size: int, numbers: Mapping[str, Array]) -> dict[str, Any]:
    """Returns the first line, with the members' first numbers, `[P]` by path.

    >>> first = beginning(2, {"gamma": np.array([0.5, 0.75])})
    >>> first["update"], first["parent"], first["numbers"]
    (0, [0, 1], {'gamma': [0.5, 0.75]})
    """
    return {
        "update": 0,
        "parent": list(range(size)),
        "copied": [False] * size,
        "explored": [False] * size,
        "fitness": [None] * size,
        "numbers": _lists(numbers),
    }


def line(update: int, generation: Generation) -> dict[str, Any]:
    """Returns a generation as JSON; a fitness that is not finite is null."""
    fitness = np.asarray(generation.fitness, np.float64).tolist()
    return {
        "update": update,
        "parent": np.asarray(generation.parent).tolist(),
        "copied": np.asarray(generation.copied).tolist(),
        "explored": np.asarray(generation.explored).tolist(),
        "fitness": [value if np.isfinite(value) else None for value in fitness],
        "numbers": _lists(generation.numbers),
    }


def schedule(lines: list[dict[str, Any]], member: int) -> Schedule:
    """Returns the numbers that trained a member: its own, and before, its parents'.

    Args:
        lines: A lineage from its beginning.
        member: A member after its last line.

    Returns:
        Pairs of an update, and the numbers by path that were in force from then on.

    >>> first = beginning(2, {"gamma": np.array([0.5, 0.75])})
    >>> moved = {"gamma": [0.9, 0.75]}
    >>> later = first | {"update": 9, "parent": [1, 1], "numbers": moved}
    >>> schedule([first, later], member=0)
    [(0, {'gamma': 0.75}), (9, {'gamma': 0.9})]
    """
    return [
        (update, {path: values[who] for path, values in line["numbers"].items()})
        for line, (update, who) in zip(lines, ancestry(lines, member), strict=True)
    ]


def in_force(schedule: Schedule, update: int) -> dict[str, float]:
    """Returns the numbers of a schedule after so many updates.

    >>> schedule = [(0, {"gamma": 0.5}), (4, {"gamma": 0.75})]
    >>> [in_force(schedule, update)["gamma"] for update in (0, 3, 4, 9)]
    [0.5, 0.5, 0.75, 0.75]
    """
    return [numbers for begun, numbers in schedule if begun <= update][-1]


def told(schedule: Schedule, path: str) -> str:
    """Returns the values of a number, and after how many updates they changed, as text.

    >>> told([(0, {"gamma": 0.5}), (4, {"gamma": 0.5}), (8, {"gamma": 0.7})], "gamma")
    '0.5, 0.7 after 8'
    """
    values = [(begun, str(np.float32(numbers[path]))) for begun, numbers in schedule]
    spans = itertools.groupby(values, key=lambda each: each[1])
    firsts = [next(span) for _, span in spans]
    return ", ".join(f"{x} after {begun}" if begun else x for begun, x in firsts)


def require_unscheduled(run_dir: Path) -> None:
    """Checks that no schedule is followed in a directory.

    Raises:
        ExperimentError: If one is; the message says how the run goes on with it.
    """
    if (run_dir / SCHEDULE).exists():
        again = command.typed("replay", run_dir, "--to", run_dir, "--resume")
        raise ExperimentError(
            f"{run_dir}: holds a replay, which goes on with its schedule: {again}"
        )


def ancestry(lines: list[dict[str, Any]], member: int) -> list[tuple[int, int]]:
    """Returns a member's ancestry: pairs of an update, and the ancestor from then on.

    >>> lines = [beginning(2, {}), {"update": 4, "parent": [1, 1]}]
    >>> ancestry(lines, 0)
    [(0, 1), (4, 0)]
    """
    past = []
    for line in reversed(lines):
        past.append((line["update"], member))
        member = line["parent"][member]
    return past[::-1]


def _lists(numbers: Mapping[str, Array]) -> dict[str, list[float]]:
    return {
        path: np.asarray(each, np.float64).tolist() for path, each in numbers.items()
    }

"""Parents and numbers of members: one line of `lineage.jsonl` per generation.

The first line is the beginning. A member that was not copied over is its own parent, so
that its whole past is found by going from parent to parent.
"""

import json
from collections.abc import Mapping
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

    def __init__(self, lines: list[dict[str, Any]]):
        self.lines = list(lines)

    def append(self, line: dict[str, Any]) -> None:
        """Adds a generation."""
        self.lines.append(line)

    def count(self, name: str) -> int:
        """Returns how many members `copied` or `explored`, over all generations."""
        return sum(sum(line[name]) for line in self.lines)


class Lineage(Family):
    """The lineage of a run directory.

    Args:
        run_dir: The run's directory.
        lines: The generations so far; later lines of the file are cut off.

    Raises:
        OSError: Here and in `append`, if the disk does not take it.
    """

    def __init__(self, run_dir: Path, lines: list[dict[str, Any]]):
        super().__init__(lines)
        self._path = run_dir / LINEAGE
        if self.lines:
            files.write(self._path, "".join(map(_text, self.lines)))
        else:
            self._path.unlink(missing_ok=True)

    def append(self, line: dict[str, Any]) -> None:
        super().append(line)
        with self._path.open("a") as file:
            file.write(_text(line))


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


def _text(line: dict[str, Any]) -> str:
    return json.dumps(line) + "\n"

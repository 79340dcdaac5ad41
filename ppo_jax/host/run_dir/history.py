"""Metrics of a run as arrays over environment steps."""

import re
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from ppo_jax.component.suggestion import unknown
from ppo_jax.host.run_dir.logger import Row

OF_A_MEMBER = re.compile(r"(?:each/(?P<each>.+)|(?P<searched>pbt/.+))/(?P<who>\d+)")

ALIKE = ("step", "time/")
"""Beginnings of the names of metrics that are the same for all members."""


class Curve(NamedTuple):
    """A metric over a run; `plt.plot(curve.steps, curve.values.T)` draws it."""

    steps: np.ndarray
    """Environment steps of each member, `[rows]`."""
    values: np.ndarray
    """`[rows]`, or `[members, rows]` if each member has its own; NaN: unavailable."""


class Curves(dict[str, Curve]):
    """Curves by metric; the `KeyError` of a name without one says which there are."""

    def __missing__(self, name: str) -> Curve:
        raise KeyError(unknown("metric", name, self))


def curves(rows: Sequence[Row]) -> Curves:
    """Returns the metrics of a run by name, each over the rows that have it.

    Evaluations and searched numbers of a population are arrays over its members. All
    other metrics are as in its rows: the median over members.

    >>> rows = [{"step": 8, "x": 1.0}, {"step": 16, "x": None, "y": 2.0}]
    >>> {name: curve.values.tolist() for name, curve in curves(rows).items()}
    {'x': [1.0, nan], 'y': [2.0]}
    >>> rows = [{"step": 8, "x": 1.5, "each/x/0": 1.0, "each/x/1": 2.0}]
    >>> curves(rows)["x"].values.tolist()
    [[1.0], [2.0]]
    """
    names = dict.fromkeys(name for row in rows for name in row if name != "step")
    found = {name: _curve(rows, name) for name in names}
    of_members: dict[str, dict[int, Curve]] = {}
    for name in names:
        if match := OF_A_MEMBER.fullmatch(name):
            metric, who = match["each"] or match["searched"], int(match["who"])
            of_members.setdefault(metric, {})[who] = found.pop(name)
    return Curves(found | {name: _stacked(x) for name, x in of_members.items()})


def of_member(rows: Sequence[Row], member: int) -> list[Row]:
    """Returns a population's rows for one member, with the names of a single run.

    Before it copied another one they are that one's, as what it has learned is.

    >>> row = {"step": 8, "x": 1.5, "each/x/0": 1.0, "each/x/1": 2.0}
    >>> of_member([row], 0), of_member([row | {"pbt/parent/0": 1.0}], 0)
    ([{'step': 8, 'x': 1.0}], [{'step': 8, 'x': 2.0}])
    """
    past = []
    for row in reversed(rows):  # A generation comes after its row's evaluation.
        member = int(row.get(f"pbt/parent/{member}", member))
        past.append(_of_member(row, member))
    return past[::-1]


def _of_member(row: Row, member: int) -> Row:
    own = {name: x for name, x in row.items() if name.startswith(ALIKE)}
    for name, value in row.items():
        match = OF_A_MEMBER.fullmatch(name)
        if match and match["each"] and int(match["who"]) == member:
            own[match["each"]] = value
    return own


def _curve(rows: Sequence[Row], name: str) -> Curve:
    there = [row for row in rows if name in row]
    values = [np.nan if row[name] is None else row[name] for row in there]
    return Curve(np.array([row["step"] for row in there]), np.array(values, np.float64))


def _stacked(members: Mapping[int, Curve]) -> Curve:
    """Joins members' curves over the same rows to one, in the order of members."""
    each = [members[who] for who in sorted(members)]
    return Curve(each[0].steps, np.stack([curve.values for curve in each]))

"""Settings of an experiment: values of fields by path, from texts of a command line.

Values are Python, as in an experiment's file: `1e-4,3e-4` for a number,
`(64,),(64, 64)` for widths, `None,networks.Lstm(size=64)` for a component.
"""

import ast
import itertools
import math
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import jax
import numpy as np

from ppo_jax.component import paths
from ppo_jax.component.coercion import unwrapped
from ppo_jax.config import Config
from ppo_jax.host.devices import streams
from ppo_jax.host.run_dir.description import (
    Description,
    as_now,
    describe,
    differences,
)
from ppo_jax.host.run_dir.experiment import ExperimentError
from ppo_jax.pbt.ranges import Range
from ppo_jax.types import Key

Setting = dict[str, Any]
"""Values by path."""
Names = Mapping[str, Any]
"""The objects that a value may name, by name."""
ROUNDING = 1e-5
"""Relative difference of numbers that devices draw from one range by one key."""


def chosen(
    config: Config,
    names: Names,
    grid_texts: Sequence[str],
    space_texts: Sequence[str],
    count: int,
) -> list[Setting]:
    """Returns the points of the grid, each with every draw.

    Args:
        config: The experiment.
        names: The objects that a value may name.
        grid_texts: Lists of values.
        space_texts: Ranges to draw from; if there are none, those of the population.
        count: How many settings to draw for each point of the grid.

    Raises:
        ExperimentError: If arguments do not go together, or a value is not possible.
    """
    space = ranges(space_texts, names)
    if count and not space and config.pbt is not None:
        space = {path: (range_,) for path, range_ in config.pbt.space.ranges}
    if bool(space) != bool(count):
        raise ExperimentError("--random and --space: one needs the other")
    require_in(paths.replace(config, {"pbt": None}), space)
    points = grid(grid_texts, names)
    if both := points[0].keys() & space.keys():
        raise ExperimentError(f"{min(both)}: is in --grid and in --space")
    if not count:
        return points
    drawn = draw(space, count, streams.settings(config.seed))
    return [point | each for point in points for each in drawn]


def apart(configs: Sequence[Config]) -> list[Setting]:
    """Returns the fields of each experiment that differ between them, but for seeds.

    >>> short, long = Config("CartPole-v1", gamma=0.5), Config("CartPole-v1", seed=3)
    >>> apart([short, long]), apart([long])
    ([{'gamma': 0.5}, {'gamma': 0.99}], [{}])
    """
    fields = [
        {path: field["value"] for path, field in describe(config).items()}
        for config in configs
    ]
    differ = [
        path
        for path in dict.fromkeys(path for each in fields for path in each)
        if path != "seed" and len({each.get(path) for each in fields}) > 1
    ]
    return [{path: _read(each.get(path)) for path in differ} for each in fields]


def grid(texts: Sequence[str], names: Names) -> list[Setting]:
    """Returns all combinations of lists of values; of no lists, one empty setting.

    Args:
        texts: Lists such as `gamma=0.9,0.99`, the first one changes slowest.
        names: The objects that a value may name.

    Raises:
        ExperimentError: If a text is no such list.

    >>> grid(["gamma=0.9,0.99", "num_epochs=4"], {})
    [{'gamma': 0.9, 'num_epochs': 4}, {'gamma': 0.99, 'num_epochs': 4}]
    """
    axes = _axes(texts, names)
    for path, values in axes.items():
        if any(isinstance(value, Range) for value in values):
            raise ExperimentError(f"{path}: a range is drawn from; give it to --space")
        told = [value for value in values if isinstance(value, float | int | str)]
        if twice := [value for value in told if told.count(value) > 1]:
            raise ExperimentError(f"{path}: {twice[0]!r} is given twice")
    points = itertools.product(*axes.values())
    return [dict(zip(axes, point, strict=True)) for point in points]


def ranges(texts: Sequence[str], names: Names) -> dict[str, tuple[Any, ...]]:
    """Parses ranges, such as `gamma=Uniform(0.9, 1.0)`, or lists to choose from.

    Raises:
        ExperimentError: If a text is neither.
    """
    found = _axes(texts, names)
    for path, values in found.items():
        if len(values) > 1 and any(isinstance(value, Range) for value in values):
            raise ExperimentError(f"{path}: expected one range, or a list of values")
    return found


def draw(space: Mapping[str, Sequence[Any]], count: int, key: Key) -> list[Setting]:
    """Draws settings from ranges, every number with a key of its own.

    Args:
        space: By path, a single range or values that are all as likely.
        count: How many settings.
        key: The key of all draws.

    >>> drawn = draw({"num_epochs": (2, 4)}, 100, jax.random.key(0))
    >>> sorted({setting["num_epochs"] for setting in drawn})
    [2, 4]
    """
    keys = jax.random.split(key, (count, max(1, len(space))))
    return [
        {
            path: _drawn(values, key)
            for (path, values), key in zip(space.items(), row, strict=False)
        }
        for row in keys
    ]


def apply(config: Config, setting: Setting) -> Config:
    """Returns the experiment with a setting.

    Raises:
        ExperimentError: If there is no such field, or it cannot have such a value.
    """
    if "seed" in setting:
        raise ExperimentError("seed: every setting has all seeds; give --seeds")
    try:
        found = paths.replace(config, setting)
        paths.require_single(found, "one number; those of an array are *array")
    except (KeyError, ValueError, TypeError) as error:
        raise ExperimentError(f"{label(setting)}: {error.args[0]}") from error
    return found


def require_in(config: Config, space: Mapping[str, Sequence[Any]]) -> None:
    """Checks that all values that may be drawn are possible, by the ends of ranges.

    Raises:
        ExperimentError: If one is not, or there is no such field.
    """
    for path, values in space.items():
        first = values[0]
        for value in first.ends if isinstance(first, Range) else values:
            apply(config, {path: value})


def label(setting: Setting) -> str:
    """Formats a setting in one line.

    >>> label({"gamma": 0.123456, "num_epochs": 4}), label({})
    ('gamma=0.123456 num_epochs=4', 'as it is')
    """
    shown = {
        path: f"{value:.6g}" if isinstance(value, float) else repr(value)
        for path, value in setting.items()
    }
    return " ".join(f"{path}={text}" for path, text in shown.items()) or "as it is"


def plain(setting: Setting) -> Setting:
    """Returns a setting for JSON; values but numbers and texts are as in Python."""
    return {
        path: value if isinstance(value, float | int | str | None) else repr(value)
        for path, value in setting.items()
    }


def described(
    settings: Sequence[Setting], configs: Mapping[int, Config]
) -> list[Description]:
    """Returns the fields that settings give, as files describe those of experiments.

    Args:
        settings: The settings.
        configs: An experiment with each setting, by its number.

    >>> described([{"gamma": 0.5}], {0: Config("CartPole-v1", gamma=0.5)})
    [{'gamma': {'kind': 'number', 'value': '0.5'}}]
    """
    return [
        _within(describe(configs[number]), setting)
        for number, setting in enumerate(settings)
    ]


def require_same(
    run_dir: Path, kept: Sequence[Description] | None, found: Sequence[Description]
) -> None:
    """Checks that settings are those with which a directory was begun.

    Args:
        run_dir: The directory.
        kept: What `described` returned then; None, in directories of earlier versions.
        found: What it returns now.

    Raises:
        ExperimentError: If a value is another one, or there are more or fewer settings.
    """
    if kept is None:
        return
    why = "names in --grid or --space have got other values"
    if len(kept) != len(found):
        expected = f"expected {len(kept)} settings, got {len(found)}"
        raise ExperimentError(f"{run_dir}: {why}: {expected}")
    lines = [
        f"\n  setting {number}: {path}: {change}"
        for number, (before, now) in enumerate(zip(kept, found, strict=True))
        for path, change in _changes(as_now(before), now).items()
    ]
    if lines:
        raise ExperimentError(f"{run_dir}: {why}:{''.join(lines)}")


def _within(description: Description, paths: Iterable[str]) -> Description:
    """Returns the fields at paths, and those inside of these."""
    places = tuple(f"{path}." for path in paths)
    return {x: y for x, y in description.items() if f"{x}.".startswith(places)}


def _changes(before: Description, now: Description) -> dict[str, str]:
    """Returns the fields that differ; numbers may, as devices round what is drawn."""
    return {
        path: change
        for path, change in differences(before, now).items()
        if not _is_close(before.get(path), now.get(path))
    }


def _is_close(*fields: dict[str, str] | None) -> bool:
    if not all(field and field["kind"] == "number" for field in fields):
        return False
    one, other = (float(field["value"]) for field in fields if field)
    return math.isclose(one, other, rel_tol=ROUNDING)


def _read(text: str | None) -> Any:
    """Returns the value of a description of a field; its text if it is no literal."""
    try:
        return ast.literal_eval(str(text))
    except (ValueError, SyntaxError):
        return text


def _axes(texts: Sequence[str], names: Names) -> dict[str, tuple[Any, ...]]:
    axes = {}
    for path, values in (_axis(text, names) for text in texts):
        if path in axes:
            raise ExperimentError(f"{path}: is given twice")
        axes[path] = values
    return axes


def _axis(text: str, names: Names) -> tuple[str, tuple[Any, ...]]:
    path, sign, values = text.partition("=")
    if not (path and sign and values.strip()):
        raise ExperimentError(f"{text!r}: expected PATH=VALUE,VALUE…")
    try:
        return path, tuple(map(unwrapped, eval(f"({values},)", dict(names))))
    except Exception as error:
        raise ExperimentError(
            f"{path}: {values!r} is no list of Python values: {error}"
        ) from error


def _drawn(values: Sequence[Any], key: Key) -> Any:
    if isinstance(values[0], Range):
        return float(values[0].sample(key))
    return values[int(np.asarray(jax.random.randint(key, (), 0, len(values))))]

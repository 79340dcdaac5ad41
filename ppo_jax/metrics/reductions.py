"""What a metric is, and what a phase says of it: one number of its updates'."""

import math
from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import numpy as np

VANISHING = 1e-8
"""A gradient of a smaller norm teaches nothing, and is no divisor."""


class Reduction(NamedTuple):
    """One number of the values `[n]` that the updates of a phase gave."""

    text: str
    of: Callable[..., float]


def _known(values: np.ndarray) -> np.ndarray:
    values = np.asarray(values, np.float64)
    return values[~np.isnan(values)]


def _of_known(reduce: Callable[..., Any], values: np.ndarray) -> float:
    known = _known(values)
    return float(reduce(known)) if known.size else math.nan


_mean = partial(_of_known, np.mean)


def _total(values: np.ndarray) -> float:
    return float(_known(values).sum())


def _quotient(total: np.ndarray, count: np.ndarray) -> float:
    return _total(total) / _total(count) if _total(count) else math.nan


def _deviation(squares: np.ndarray, total: np.ndarray, count: np.ndarray) -> float:
    """Of samples in groups, given their squares around the mean of each group."""
    means = np.asarray(total, np.float64) / np.maximum(count, 1)
    between = count * (means - _quotient(total, count)) ** 2
    return math.sqrt(_quotient(squares + between, count))


def _any(count: np.ndarray) -> float:
    return float(_total(count) > 0)


def _product(each: np.ndarray, count: np.ndarray) -> float:
    return _total(np.asarray(each, np.float64) * np.asarray(count, np.float64))


def _steps_with(each: np.ndarray, count: np.ndarray) -> float:
    return _product(np.asarray(each) > 0, count)


def _ratio(above: np.ndarray, below: np.ndarray) -> float:
    dividend, divisor = _mean(above), _mean(below)
    return dividend / divisor if min(dividend, divisor) > VANISHING else math.nan


def _shortfall(limit: np.ndarray, estimate: np.ndarray) -> float:
    return _mean(np.maximum(np.subtract(limit, estimate), 0.0))


MEAN = Reduction("mean", _mean)
SUM = Reduction("sum", _total)
LARGEST = Reduction("largest", partial(_of_known, np.max))
QUOTIENT = Reduction("sum / number", _quotient)
DEVIATION = Reduction("deviation of all", _deviation)
ANY = Reduction("1 or 0", _any)
RATIO = Reduction("ratio of means", _ratio)
SHORTFALL = Reduction("mean shortfall", _shortfall)
PRODUCT = Reduction("sum over steps", _product)
STEPS_WITH = Reduction("steps with any", _steps_with)
HOST = Reduction("once", _mean)


class Metric(NamedTuple):
    """A row: what a metric is."""

    name: str
    """With a `*` for what varies: a group, a layer, a critic."""
    unit: str
    meaning: str
    reduction: Reduction = MEAN
    sources: tuple[str, ...] = ()
    """What it is computed from; by default, from what has its name."""
    needs: str = ""
    """What an experiment needs to have it; nothing: every run has it."""
    null: str = ""
    """When it is unavailable, NaN or null; nothing: never."""

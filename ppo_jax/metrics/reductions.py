"""Metrics, and their reductions: one number of a phase from those of its updates."""

import math
from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import numpy as np

VANISHING = 1e-8
"""Norm of gradients below which they teach nothing, and are no divisor."""


class Reduction(NamedTuple):
    """A function from the values `[n]` of a phase's updates to one number."""

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
    """Returns the deviation of samples in groups, given squares around group means."""
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
    """A row of the table of metrics."""

    name: str
    """The name, with a `*` for the part that varies: a group, a layer, a critic."""
    unit: str
    meaning: str
    reduction: Reduction = MEAN
    sources: tuple[str, ...] = ()
    """Names of the values that the metric is computed from; by default, its own."""
    needs: str = ""
    """Parts that an experiment needs to have the metric; empty: every run has it."""
    null: str = ""
    """The case in which the metric is unavailable, NaN or null; empty: none."""

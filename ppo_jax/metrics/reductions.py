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
    of: Callable[..., Any]
    """The function, of the values of each source."""
    at_once: bool = False
    """Whether it takes `[n, P]`, too, and returns `[P]`: each member's as if alone."""

    def over(self, *values: np.ndarray) -> Any:
        """Returns the number of values `[n]`, or those `[P]` of values `[n, P]`.

        >>> median = Reduction("median", np.median)
        >>> median.over(np.array([[0.0, 1.0], [0.0, 3.0], [6.0, 4.0]]))
        array([0., 3.])
        """
        if self.at_once or np.ndim(values[0]) == 1:
            return self.of(*values)
        each = zip(*(x.T for x in values), strict=True)
        return np.array([self.of(*member) for member in each], np.float64)


def _number(values: Any) -> Any:
    """Returns values `[P]` as they are, and a single one as a number of Python."""
    return values if np.ndim(values) else float(values)


def _of_known(
    reduce: Callable[..., Any], values: np.ndarray, nothing: float = math.nan
) -> Any:
    """Reduces what is not NaN along the first axis; `nothing` where all of it is.

    The values of a member are in a row without gaps, next to members that have as
    many: sums of rows are rounded as those of a vector, which depends on its length.
    """
    columns = np.asarray(values, np.float64)
    size = math.prod(columns.shape[1:])
    rows = np.ascontiguousarray(columns.reshape(len(columns), size).T)
    absent = np.isnan(rows)
    counts = np.sum(~absent, axis=1)
    if absent.any():
        order = np.argsort(absent, axis=1, kind="stable")
        rows = np.take_along_axis(rows, order, axis=1)
    found = np.full(len(rows), nothing)
    for count in set(counts.tolist()) - {0}:
        alike = counts == count
        found[alike] = reduce(rows[alike][:, :count], axis=1)
    return _number(found.reshape(columns.shape[1:]))


_mean = partial(_of_known, np.mean)


def _total(values: np.ndarray) -> Any:
    return _of_known(np.sum, values, nothing=0.0)


def _divided(dividend: Any, divisor: Any, exists: Any) -> Any:
    """Returns a quotient where it exists, NaN elsewhere."""
    with np.errstate(all="ignore"):
        return _number(np.where(exists, np.divide(dividend, divisor), math.nan))


def _quotient(total: np.ndarray, count: np.ndarray) -> Any:
    divisor = _total(count)
    return _divided(_total(total), divisor, np.not_equal(divisor, 0.0))


def _deviation(squares: np.ndarray, total: np.ndarray, count: np.ndarray) -> Any:
    """Returns the deviation of samples in groups, given squares around group means."""
    means = np.asarray(total, np.float64) / np.maximum(count, 1)
    between = count * (means - _quotient(total, count)) ** 2
    return _number(np.sqrt(_quotient(squares + between, count)))


def _any(count: np.ndarray) -> Any:
    return _number(np.asarray(np.greater(_total(count), 0.0), np.float64))


def _product(each: np.ndarray, count: np.ndarray) -> Any:
    return _total(np.asarray(each, np.float64) * np.asarray(count, np.float64))


def _steps_with(each: np.ndarray, count: np.ndarray) -> Any:
    return _product(np.asarray(each) > 0, count)


def _ratio(above: np.ndarray, below: np.ndarray) -> Any:
    dividend, divisor = _mean(above), _mean(below)
    exists = np.minimum(dividend, divisor) > VANISHING
    return _divided(dividend, divisor, exists)


def _shortfall(limit: np.ndarray, estimate: np.ndarray) -> Any:
    return _mean(np.maximum(np.subtract(limit, estimate), 0.0))


MEAN = Reduction("mean", _mean, at_once=True)
SUM = Reduction("sum", _total, at_once=True)
LARGEST = Reduction("largest", partial(_of_known, np.max), at_once=True)
QUOTIENT = Reduction("sum / number", _quotient, at_once=True)
DEVIATION = Reduction("deviation of all", _deviation, at_once=True)
ANY = Reduction("1 or 0", _any, at_once=True)
RATIO = Reduction("ratio of means", _ratio, at_once=True)
SHORTFALL = Reduction("mean shortfall", _shortfall, at_once=True)
PRODUCT = Reduction("sum over steps", _product, at_once=True)
STEPS_WITH = Reduction("steps with any", _steps_with, at_once=True)
HOST = Reduction("once", _mean, at_once=True)


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

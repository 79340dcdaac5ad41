"""Curves with fewer points, which look the same."""

import numpy as np


def thinned(x: np.ndarray, y: np.ndarray, count: int) -> tuple[np.ndarray, np.ndarray]:
    """Thins a curve to at most `count` points, with its ends and every extreme.

    Each stretch keeps its least and its greatest value; one without a finite value
    stays a gap.

    Args:
        x: `[n]`.
        y: `[n]`, NaN where there is a gap.
        count: At least 4.

    >>> x, y = thinned(np.arange(9.0), np.array([0, 1, 9, 1, 0, 1, -7, 1, 0.0]), 4)
    >>> x.tolist(), y.tolist()
    ([0.0, 2.0, 6.0, 8.0], [0.0, 9.0, -7.0, 0.0])
    """
    if len(x) <= count:
        return x, y
    stretches = np.array_split(np.arange(1, len(x) - 1), (count - 2) // 2)
    kept = [0, *(i for stretch in stretches for i in _extremes(stretch, y)), len(x) - 1]
    return x[kept], y[kept]


def _extremes(stretch: np.ndarray, y: np.ndarray) -> list[int]:
    known = stretch[np.isfinite(y[stretch])]
    if not known.size:
        return [int(stretch[0])]
    return sorted({int(known[y[known].argmin()]), int(known[y[known].argmax()])})

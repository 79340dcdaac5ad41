"""A growing curve in little memory."""

from collections.abc import Iterator


class Curve:
    """Points of a series: all of a short one, evenly spread ones of a long one.

    Args:
        most: The most points that are kept.

    Attributes:
        last: The newest point; None: there is none.

    >>> curve = Curve(most=4)
    >>> for step in range(10):
    ...     curve.add(step, 2.0 * step)
    >>> list(curve)
    [(0, 0.0), (4, 8.0), (8, 16.0), (9, 18.0)]
    """

    def __init__(self, most: int = 400):
        self.last: tuple[int, float] | None = None
        self._points: list[tuple[int, float]] = []
        self._most, self._stride, self._count = most, 1, 0

    def add(self, step: int, value: float) -> None:
        """Adds a point."""
        self.last = (step, value)
        if self._count % self._stride == 0:
            self._points.append(self.last)
        self._count += 1
        if len(self._points) >= self._most:
            self._points = self._points[::2]
            self._stride *= 2

    def __iter__(self) -> Iterator[tuple[int, float]]:
        yield from self._points
        if self.last is not None and self._points[-1] != self.last:
            yield self.last
